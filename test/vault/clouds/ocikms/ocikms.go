// Package ocikms stands for the seal of this name: the server of the tests unseals with its own keys.
package ocikms

import wrapping "github.com/hashicorp/go-kms-wrapping/v2"

type Wrapper struct{ wrapping.Wrapper }

func NewWrapper() *Wrapper { return &Wrapper{} }

const (
	KmsConfigKeyId              = "key_id"
	KmsConfigCryptoEndpoint     = "crypto_endpoint"
	KmsConfigManagementEndpoint = "management_endpoint"
)
