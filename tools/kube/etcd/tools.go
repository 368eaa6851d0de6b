//go:build tools

// Package tools names the program that is built from this module, so that `go mod tidy` keeps what
// it needs. It is never compiled.
package tools

import _ "go.etcd.io/etcd/server/v3"
