package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// TLS names the files of a server's certificate, and of the authorities whose clients alone may connect.
type TLS struct{ Cert, Key, ClientCA string }

// Config returns the TLS configuration, nil if no certificate is named. Files that change are read again with the next
// connection, as certificates are renewed while the server runs; where they are wrong then, the ones before stay in use
// and log says so.
func (t TLS) Config(log *slog.Logger) (*tls.Config, error) {
	if t == (TLS{}) {
		return nil, nil
	}
	now, err := t.load()
	if err != nil {
		return nil, err
	}
	c := &certificates{files: t, log: log, now: now, read: t.stamp()}
	config := now.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.newest(), nil }
	return config, nil
}

func (t TLS) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("loading the certificate: %w", err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if t.ClientCA != "" {
		pem, err := os.ReadFile(t.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("reading the clients' authorities: %w", err)
		}
		c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !c.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate in PEM", t.ClientCA)
		}
	}
	return c, nil
}

// stamp tells one content of the files from the next.
type stamp [3]struct {
	changed time.Time
	size    int64
}

func (t TLS) stamp() (s stamp) {
	for i, name := range []string{t.Cert, t.Key, t.ClientCA} {
		if info, err := os.Stat(name); err == nil {
			s[i].changed, s[i].size = info.ModTime(), info.Size()
		}
	}
	return s
}

// certificates are those in use.
type certificates struct {
	files TLS
	log   *slog.Logger
	mu    sync.Mutex
	now   *tls.Config
	read  stamp
}

func (c *certificates) newest() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.files.stamp()
	if found == c.read {
		return c.now
	}
	c.read = found
	next, err := c.files.load()
	if err != nil {
		c.log.Error("certificates have changed and cannot be used: the ones before stay in use", "error", err)
		return c.now
	}
	c.log.Info("certificates have changed and are in use", "file", c.files.Cert)
	c.now = next
	return next
}
