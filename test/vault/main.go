// A server with the parts of Vault that the tests use: the core, Transit, key-value secrets, and logins by JWT, Kubernetes and
// AppRole. Its data are in a folder, so that it can be killed and started again. It starts sealed.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	_ "unsafe"

	log "github.com/hashicorp/go-hclog"
	jwtauth "github.com/hashicorp/vault-plugin-auth-jwt"
	kubeauth "github.com/hashicorp/vault-plugin-auth-kubernetes"
	kv "github.com/hashicorp/vault-plugin-secrets-kv"
	"github.com/hashicorp/vault/builtin/credential/approle"
	"github.com/hashicorp/vault/builtin/logical/transit"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/sdk/framework"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/file"
	"github.com/hashicorp/vault/vault"
)

// Stubs for paths of the enterprise edition. The released SDK panics about them; the one in Vault's own tree does not.
//
//go:linkname entPaths github.com/hashicorp/vault/vault.entPaths
var entPaths func(*vault.SystemBackend) []*framework.Path

func init() {
	entPaths = func(*vault.SystemBackend) []*framework.Path { return nil }
}

// Everything is linked, so no plugin is looked for.
type noPlugins struct{}

func (noPlugins) Contains(string, consts.PluginType) bool { return false }
func (noPlugins) Get(string, consts.PluginType) (func() (interface{}, error), bool) {
	return nil, false
}
func (noPlugins) Keys(consts.PluginType) []string { return nil }
func (noPlugins) DeprecationStatus(string, consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, true
}
func (noPlugins) IsBuiltinEntPlugin(string, consts.PluginType) bool { return false }

// Of the path that the released SDK panics about, in the same way.
func transitFactory(ctx context.Context, conf *logical.BackendConfig) (logical.Backend, error) {
	backend, err := transit.Backend(ctx, conf)
	if err != nil {
		return nil, err
	}
	for _, path := range backend.Paths {
		_, creates := path.Operations[logical.CreateOperation]
		if creates && path.ExistenceCheck == nil {
			path.ExistenceCheck = func(context.Context, *logical.Request, *framework.FieldData) (bool, error) {
				return true, nil
			}
		}
	}
	if err := backend.Setup(ctx, conf); err != nil {
		return nil, err
	}
	return backend, nil
}

func main() {
	address := flag.String("address", "127.0.0.1:8200", "where it listens")
	data := flag.String("data", "", "the folder of its data")
	cert := flag.String("tls-cert", "", "with -tls-key: speaks TLS")
	key := flag.String("tls-key", "", "the key of the certificate")
	flag.Parse()
	if err := serve(*address, *data, *cert, *key); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(address, data, cert, key string) error {
	logger := log.New(&log.LoggerOptions{Level: log.Error, Output: os.Stderr})
	physical, err := file.NewFileBackend(map[string]string{"path": data}, logger)
	if err != nil {
		return err
	}
	core, err := vault.NewCore(&vault.CoreConfig{
		Physical:        physical,
		StorageType:     "file",
		DisableMlock:    true,
		Logger:          logger,
		BuiltinRegistry: noPlugins{},
		LogicalBackends: map[string]logical.Factory{"transit": transitFactory, "kv": kv.Factory},
		CredentialBackends: map[string]logical.Factory{
			"jwt": jwtauth.Factory, "kubernetes": kubeauth.Factory, "approle": approle.Factory,
		},
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: vaulthttp.Handler.Handler(&vault.HandlerProperties{Core: core})}
	if cert != "" {
		return server.ServeTLS(listener, cert, key)
	}
	return server.Serve(listener)
}
