//! Objects and the names that teams have for them: taking them in, giving them out, and removing what
//! nothing names any more.

mod gc;
mod keep;
mod quota;

pub use gc::begin;
pub use keep::{Begun, Target, begin as begin_upload};
pub(crate) use keep::{drop_names, keep};
pub use quota::{list, set};
pub(crate) use quota::{room_of, used};

use crate::fault::{self, Fault};
use berth_api::Code;
use berth_blobs::Error;

/// Kinds of names. The database has these words.
pub const ARTIFACT: &str = "artifact";
pub const DVC: &str = "dvc";
pub const CODE: &str = "code";

/// What went wrong with an object, for whoever asked for it.
pub(crate) fn failed(error: Error) -> Fault {
    match &error {
        full if full.is_full() => Fault::no_room(&full.to_string()),
        Error::TooLarge { .. } => Fault::new(Code::TooLarge, error.to_string())
            .next("send less, or ask an admin for a larger quota: `berth storage` shows it"),
        Error::CutOff { .. } => {
            Fault::new(Code::BadRequest, error.to_string()).next("send it again")
        }
        Error::Bucket { .. } => fault::hidden(Code::Internal, &error)
            .next("the store of objects does not answer as it should; try again later"),
        _ => fault::hidden(Code::Internal, &error),
    }
}
