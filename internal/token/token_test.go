package token

import (
	"bytes"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestNew(t *testing.T) {
	a, err := New(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := New(rand.Reader)
	if a == b || !WellFormed(a) || !WellFormed(b) {
		t.Errorf("%q, %q", a, b)
	}
	fixed, err := New(bytes.NewReader(slices.Repeat([]byte{0xab}, size)))
	if want := "perseus_" + strings.Repeat("ab", 32); fixed != want || err != nil {
		t.Errorf("%q, %v, want %q", fixed, err, want)
	}
	// Too little randomness is no token at all.
	for _, r := range []*bytes.Reader{bytes.NewReader(nil), bytes.NewReader(make([]byte, size-1))} {
		if got, err := New(r); err == nil || got != "" {
			t.Errorf("from %d bytes: %q, %v", r.Size(), got, err)
		}
	}
	failure := errors.New("no entropy")
	if _, err := New(iotest.ErrReader(failure)); !errors.Is(err, failure) {
		t.Error(err)
	}
}

func TestMatches(t *testing.T) {
	a, _ := New(rand.Reader)
	b, _ := New(rand.Reader)
	hash := Hash(a)
	for _, tt := range []struct {
		token string
		hash  []byte
		want  bool
	}{
		{a, hash, true},
		{b, hash, false},
		{a + " ", hash, false},
		{strings.ToUpper(a), hash, false},
		{a, hash[:31], false},
		{a, nil, false},
		{"", nil, false},
		{"", Hash(""), true}, // which WellFormed keeps from being asked
	} {
		if got := Matches(tt.token, tt.hash); got != tt.want {
			t.Errorf("Matches(%q, %x) = %v", tt.token, tt.hash, got)
		}
	}
	if bytes.Contains(hash, []byte(a)) || len(hash) != 32 {
		t.Errorf("hash %x", hash)
	}
}

func TestWellFormed(t *testing.T) {
	hex := strings.Repeat("0f", 32)
	for token, want := range map[string]bool{
		Prefix + hex: true, Prefix + strings.ToUpper(hex): false, hex: false, Prefix: false, "": false,
		Prefix + hex + "0": false, Prefix + hex[1:] + "g": false, Prefix + hex[1:] + "/": false, "Perseus_" + hex: false,
	} {
		if WellFormed(token) != want {
			t.Errorf("WellFormed(%q) = %v", token, !want)
		}
	}
}

func TestScopes(t *testing.T) {
	for _, tt := range []struct {
		list, want string
		allowed    []Scope // of each scope by itself
	}{
		{"rank", "rank", []Scope{ReadOnly, Rank}},
		{"read-only", "read-only", []Scope{ReadOnly}},
		{"operator", "operator", []Scope{ReadOnly, Rank, Operator}},
		{" rank , read-only,rank", "read-only,rank", []Scope{ReadOnly, Rank}},
	} {
		scopes, err := ParseScopes(tt.list)
		if err != nil || FormatScopes(scopes) != tt.want {
			t.Errorf("%q: %v, %v", tt.list, scopes, err)
		}
		for _, s := range All() {
			if got := Allows(scopes, s); got != slices.Contains(tt.allowed, s) {
				t.Errorf("%q allows %s: %v", tt.list, s, got)
			}
		}
		if Allows(scopes) { // no scope is wanted by what nobody may do
			t.Errorf("%q allows what nobody may", tt.list)
		}
	}
	if !Allows([]Scope{Rank}, ReadOnly, Rank) || Allows(nil, ReadOnly) || Allows([]Scope{""}, Rank) {
		t.Error("any one of several is enough, none is not")
	}
	for _, list := range []string{"", "rank,", "admin", "Rank", "read_only"} {
		if scopes, err := ParseScopes(list); err == nil || scopes != nil || !strings.Contains(err.Error(), "read-only,rank,operator") {
			t.Errorf("%q: %v, %v", list, scopes, err)
		}
	}
}

func TestFromHeader(t *testing.T) {
	for header, want := range map[string]string{
		"Bearer perseus_x": "perseus_x", "bearer  perseus_x ": "perseus_x", "Bearer": "", "Bearer ": "", "": "",
		"Basic cGVyc2V1cw==": "", "perseus_x": "",
	} {
		if got, ok := FromHeader(header); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v", header, got, ok)
		}
	}
}
