// `verify-svid DOMAIN BUNDLE-ADDRESS CA-FILE AUDIENCE <TOKEN`, as a workload with go-spiffe does it: fetches the bundle of the
// trust domain, verifies the JWT-SVID with it, and prints its SPIFFE ID.
package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/federation"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/jwtsvid"
)

func verify(domain, address, authorities, audience string) (string, error) {
	trustDomain, err := spiffeid.TrustDomainFromString(domain)
	if err != nil {
		return "", err
	}
	pem, err := os.ReadFile(authorities)
	if err != nil {
		return "", err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	bundle, err := federation.FetchBundle(ctx, trustDomain, address, federation.WithWebPKIRoots(roots))
	if err != nil {
		return "", err
	}
	token, err := io.ReadAll(io.LimitReader(os.Stdin, 1<<16))
	if err != nil {
		return "", err
	}
	svid, err := jwtsvid.ParseAndValidate(strings.TrimSpace(string(token)), bundle, []string{audience})
	if err != nil {
		return "", err
	}
	return svid.ID.String(), nil
}

func main() {
	id, err := verify(os.Args[1], os.Args[2], os.Args[3], os.Args[4])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(id)
}
