//go:build tools

// Package tools names the programs of others, so that `go mod tidy` keeps their modules.
package tools

import (
	_ "helm.sh/helm/v3/cmd/helm"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
)
