package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/perseus-energy/perseus/internal/client"
	"github.com/perseus-energy/perseus/internal/fileio"
)

// serverFlags say how to be let in by a server.
type serverFlags struct {
	TokenFile string `group:"The server:" file:"" placeholder:"FILE" help:"A file with the token, instead of the variable PERSEUS_TOKEN."`
	TLSCA     string `name:"tls-ca" aliases:"ca-file" group:"The server:" file:"" placeholder:"FILE" help:"Certificates of the authorities to trust, instead of the system's."`
	TLSCert   string `name:"tls-cert" group:"The server:" file:"" placeholder:"FILE" help:"A client certificate, for servers that ask for one."`
	TLSKey    string `name:"tls-key" group:"The server:" file:"" placeholder:"FILE" help:"Its key."`
}

// client returns a client of the server of that URL, configured by the flags and what config has besides. The caller
// closes it.
func (f *serverFlags) client(w *world, server string, config client.Config) (*client.Client, error) {
	token, err := f.token(w)
	if err != nil {
		return nil, input(err)
	}
	config.Server, config.Token = server, token
	config.CAFile, config.CertFile, config.KeyFile = f.TLSCA, f.TLSCert, f.TLSKey
	config.UserAgent = cmp.Or(config.UserAgent, "perseus") + "/" + cmp.Or(version, "devel")
	cl, err := client.New(config)
	if err != nil {
		return nil, input(fmt.Errorf("--server: %w", err))
	}
	return cl, nil
}

// token returns the token to send, "" for none.
func (f *serverFlags) token(w *world) (string, error) {
	if f.TokenFile == "" {
		return strings.TrimSpace(w.getenv("PERSEUS_TOKEN")), nil
	}
	file, err := fileio.OpenText(f.TokenFile, w.stdin)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	defer file.Close()
	const most = 64 << 10 // a token is shorter, and what is longer is another file
	text, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return "", fmt.Errorf("--token-file %s: %w", f.TokenFile, err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("--token-file %s: it is empty", f.TokenFile)
	}
	return token, nil
}
