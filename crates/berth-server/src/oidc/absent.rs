//! A program that was built without providers of identities.

use super::{Begun, Failed, Kept, OidcError, OidcOptions};
use berth_service::sign_in::{OidcRules, Provided};
use url::Url;

#[derive(Debug)]
pub enum Oidc {}

impl Oidc {
    pub fn open(_: &OidcOptions, _: Option<&Url>) -> Result<Oidc, OidcError> {
        Err(OidcError::Absent)
    }

    pub fn name(&self) -> &str {
        match *self {}
    }

    pub fn rules(&self) -> &OidcRules {
        match *self {}
    }

    pub async fn begin(&self, _: String) -> Result<Begun, Failed> {
        match *self {}
    }

    pub async fn finish(&self, _: &str, _: Kept) -> Result<Provided, Failed> {
        match *self {}
    }

    pub async fn logout_url(&self, _: &str, _: &str) -> Option<String> {
        match *self {}
    }
}
