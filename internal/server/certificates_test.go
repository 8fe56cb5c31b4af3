package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certify writes a certificate for 127.0.0.1 that signs itself, and its key.
func certify(t *testing.T, cert, key, name string) tls.Certificate {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	for file, text := range map[string][]byte{cert: certPEM, key: keyPEM} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// TestCertificates renews the certificate and the clients' authority under a running server, and breaks them.
func TestCertificates(t *testing.T) {
	s, _ := start(t, file(t), nil)
	dir := t.TempDir()
	cert, key, ca := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem"), filepath.Join(dir, "ca.pem")
	certify(t, cert, key, "first")
	client := certify(t, ca, filepath.Join(dir, "client.pem"), "client")
	var log bytes.Buffer
	config, err := TLS{cert, key, ca}.Config(slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	hs := &http.Server{Handler: h, TLSConfig: config, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- hs.ServeTLS(l, "", "") }()
	// ask returns whose certificate the server has; empty where it did not answer.
	ask := func(with tls.Certificate) (name string) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{with}}} //nolint:gosec // who answers is looked at
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+l.Addr().String()+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			return ""
		}
		_ = resp.Body.Close()
		return resp.TLS.PeerCertificates[0].Subject.CommonName
	}
	stranger := certify(t, filepath.Join(dir, "x.pem"), filepath.Join(dir, "y.pem"), "stranger")
	if a, b := ask(client), ask(stranger); a != "first" || b != "" {
		t.Errorf("answered as %q, and to a stranger as %q", a, b)
	}
	certify(t, cert, key, "second name") // of another size, should the clock be coarse
	if a := ask(client); a != "second name" {
		t.Errorf("after a renewal answered as %q", a)
	}
	if err := os.WriteFile(cert, []byte("half a"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if a := ask(client); a != "second name" {
			t.Errorf("with a broken file answered as %q", a)
		}
	}
	if n := strings.Count(log.String(), "cannot be used"); n != 1 {
		t.Errorf("said %d times: %s", n, &log)
	}
	certify(t, cert, key, "third")
	renewed := certify(t, ca, filepath.Join(dir, "client.pem"), "renewed client")
	if a, b := ask(client), ask(renewed); a != "" || b != "third" {
		t.Errorf("with another authority answered the old one as %q, the new one as %q", a, b)
	}
	if err := hs.Close(); err != nil {
		t.Error(err)
	}
	<-served
}
