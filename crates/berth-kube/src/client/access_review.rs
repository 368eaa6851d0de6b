//! Asks the API server which permissions our account has, and who we are to it.

use super::api::{Api, decode};
use super::error::Result;
use super::rbac::{AllowedRules, Permission};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Review {
    status: Reviewed,
}

#[derive(Deserialize)]
struct Reviewed {
    #[serde(default)]
    allowed: bool,
}

#[derive(Deserialize)]
struct RulesReview {
    status: AllowedRules,
}

#[derive(Deserialize)]
struct Who {
    status: WhoStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WhoStatus {
    user_info: UserInfo,
}

#[derive(Deserialize)]
struct UserInfo {
    username: String,
}

impl Api {
    /// Whether we have a permission: in one namespace, or in all of them.
    pub async fn is_allowed(
        &self,
        permission: &Permission,
        namespace: Option<&str>,
    ) -> Result<bool> {
        const PATH: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let (resource, part) =
            permission.resource.split_once('/').unwrap_or((&permission.resource, ""));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": {
                "verb": permission.verb,
                "group": permission.group,
                "resource": resource,
                "subresource": part,
                "namespace": namespace.unwrap_or_default(),
            } },
        });
        let answer = self.post(PATH, &review).await?;
        Ok(decode::<Review>(PATH, &answer)?.status.allowed)
    }

    /// What we may do in a namespace, all at once. One that is not there tells what we may do
    /// everywhere.
    pub async fn allowed_rules(&self, namespace: &str) -> Result<AllowedRules> {
        const PATH: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "spec": { "namespace": namespace },
        });
        let answer = self.post(PATH, &review).await?;
        Ok(decode::<RulesReview>(PATH, &answer)?.status)
    }

    /// Who we are to the API server.
    pub async fn current_user(&self) -> Result<String> {
        const PATH: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let review =
            json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
        let answer = self.post(PATH, &review).await?;
        Ok(decode::<Who>(PATH, &answer)?.status.user_info.username)
    }
}
