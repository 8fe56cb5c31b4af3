package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
)

// certificate writes a new certificate that signs itself, and its key, and returns the files.
func certificate(t *testing.T) (cert *x509.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "agent"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err = x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	return cert, writePEM(t, filepath.Join(folder, "cert.pem"), "CERTIFICATE", der), writePEM(t, filepath.Join(folder, "key.pem"), "PRIVATE KEY", private)
}

func writePEM(t *testing.T, path, kind string, der []byte) string {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTLS connects to servers whose certificate is trusted or not, and that ask for one or not.
func TestTLS(t *testing.T) {
	mine, certFile, keyFile := certificate(t)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("HTTP/%d", r.ProtoMajor)
		}
		answerJSON(w, api.Job{ID: "a"})
	})
	start := func(config *tls.Config) (url, caFile string) {
		server := httptest.NewUnstartedServer(handler)
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.TLS, server.EnableHTTP2 = config, true
		server.StartTLS()
		t.Cleanup(server.Close)
		return server.URL, writePEM(t, filepath.Join(t.TempDir(), "ca.pem"), "CERTIFICATE", server.Certificate().Raw)
	}
	clients := x509.NewCertPool()
	clients.AddCert(mine)
	open, openCA := start(nil)
	mutual, mutualCA := start(&tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients})
	plain := httptest.NewServer(handler)
	t.Cleanup(plain.Close)

	for _, test := range []struct {
		name   string
		config Config
		want   string // "": fine
	}{
		{"trusted", Config{Server: open, CAFile: openCA}, ""},
		{"not trusted", Config{Server: open}, "certificate"},
		{"another authority", Config{Server: open, CAFile: certFile}, "certificate"},
		{"known to the server", Config{Server: mutual, CAFile: mutualCA, CertFile: certFile, KeyFile: keyFile}, ""},
		{"unknown to the server", Config{Server: mutual, CAFile: mutualCA}, "certificate required"},
		{"HTTP in place of HTTPS", Config{Server: strings.Replace(plain.URL, "http:", "https:", 1)}, "HTTP response to HTTPS client"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tries := 0
			test.config.Patience, test.config.OnRetry = time.Minute, func(error, time.Duration) { tries++ }
			_, err := dial(t, test.config).Job(t.Context(), "a")
			var out *Unreachable
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (!errors.As(err, &out) || !strings.Contains(err.Error(), test.want)):
				t.Errorf("%v, want %s", err, test.want)
			case tries > 0 && !strings.HasPrefix(test.name, "unknown"): // the server may hang up before its reason arrives
				t.Errorf("%d tries more", tries)
			}
		})
	}
}

// TestRenewed has a client certificate that is renewed taken up, and one that is broken said.
func TestRenewed(t *testing.T) {
	_, certFile, keyFile := certificate(t)
	tr, err := transport(Config{CertFile: certFile, KeyFile: keyFile})
	if err != nil {
		t.Fatal(err)
	}
	get := func() (*tls.Certificate, error) { return tr.TLSClientConfig.GetClientCertificate(nil) }
	old, err := get()
	if err != nil {
		t.Fatal(err)
	}
	_, newCert, newKey := certificate(t)
	if err := errors.Join(os.Rename(newCert, certFile), os.Rename(newKey, keyFile)); err != nil {
		t.Fatal(err)
	}
	renewed, err := get()
	if err != nil || string(renewed.Certificate[0]) == string(old.Certificate[0]) {
		t.Errorf("the same certificate: %v", err)
	}
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	if _, err := get(); err == nil || !strings.Contains(err.Error(), keyFile) {
		t.Error(err)
	}
}
