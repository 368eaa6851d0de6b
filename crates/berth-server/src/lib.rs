//! The control loop and everything people and programs talk to.
