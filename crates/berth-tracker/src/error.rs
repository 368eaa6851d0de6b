//! Errors with the codes and statuses that MLflow's client knows.

use std::fmt;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    InvalidParameterValue,
    BadRequest,
    AlreadyExists,
    LimitExceeded,
    Unauthenticated,
    PermissionDenied,
    DoesNotExist,
    EndpointNotFound,
    Conflict,
    TooManyRequests,
    Internal,
    InvalidState,
    NotImplemented,
    Unavailable,
}

impl Code {
    /// Its name on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Code::InvalidParameterValue => "INVALID_PARAMETER_VALUE",
            Code::BadRequest => "BAD_REQUEST",
            Code::AlreadyExists => "RESOURCE_ALREADY_EXISTS",
            Code::LimitExceeded => "RESOURCE_LIMIT_EXCEEDED",
            Code::Unauthenticated => "UNAUTHENTICATED",
            Code::PermissionDenied => "PERMISSION_DENIED",
            Code::DoesNotExist => "RESOURCE_DOES_NOT_EXIST",
            Code::EndpointNotFound => "ENDPOINT_NOT_FOUND",
            Code::Conflict => "RESOURCE_CONFLICT",
            Code::TooManyRequests => "REQUEST_LIMIT_EXCEEDED",
            Code::Internal => "INTERNAL_ERROR",
            Code::InvalidState => "INVALID_STATE",
            Code::NotImplemented => "NOT_IMPLEMENTED",
            Code::Unavailable => "TEMPORARILY_UNAVAILABLE",
        }
    }

    /// The client retries after 408, 429 and most of 5xx, so a permanent error is another 4xx.
    pub const fn status(self) -> u16 {
        match self {
            Code::InvalidParameterValue
            | Code::BadRequest
            | Code::AlreadyExists
            | Code::LimitExceeded => 400,
            Code::Unauthenticated => 401,
            Code::PermissionDenied => 403,
            Code::DoesNotExist | Code::EndpointNotFound => 404,
            Code::Conflict => 409,
            Code::TooManyRequests => 429,
            Code::Internal | Code::InvalidState => 500,
            Code::NotImplemented => 501,
            Code::Unavailable => 503,
        }
    }
}

/// Why Berth refused a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub code: Code,
    pub message: String,
}

impl Error {
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error { code, message: message.into() }
    }

    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(Code::InvalidParameterValue, message)
    }

    pub fn missing(parameter: &str) -> Error {
        Error::invalid(format!("Missing value for required parameter '{parameter}'."))
    }

    /// `value` is JSON.
    pub fn bad_value(parameter: &str, value: impl fmt::Display, why: &str) -> Error {
        let why = if why.is_empty() { ".".to_owned() } else { format!(": {why}") };
        Error::invalid(format!("Invalid value {value} for parameter '{parameter}' supplied{why}"))
    }

    pub fn absent(message: impl Into<String>) -> Error {
        Error::new(Code::DoesNotExist, message)
    }

    pub fn exists(message: impl Into<String>) -> Error {
        Error::new(Code::AlreadyExists, message)
    }

    pub fn over_limit(message: impl Into<String>) -> Error {
        Error::new(Code::LimitExceeded, message)
    }

    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(Code::Internal, message)
    }

    /// The body of the response.
    pub fn body(&self) -> Vec<u8> {
        let body = serde_json::json!({ "error_code": self.code.word(), "message": self.message });
        serde_json::to_vec(&body).expect("two texts are JSON")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.word(), self.message)
    }
}

impl std::error::Error for Error {}
