//! What goes over the wire: types, problems, and a client.
