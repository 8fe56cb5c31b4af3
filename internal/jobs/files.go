package jobs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/pipeline/dagfile"
)

// Graph returns the job of a graph in the text of a file, and what was found.
func Graph(text []byte, name string) (characterize.Job, []string, error) {
	f, err := dagfile.Read(bytes.NewReader(text), name)
	if err != nil {
		return characterize.Job{}, nil, err
	}
	sum := sha256.Sum256(text)
	g := f.Problem.Graph
	note := fmt.Sprintf("%s: %d ops on %d resources, %d dependencies, %d curves", name, g.Ops, len(f.Resources), g.Dependencies, len(f.Problem.Curves))
	return characterize.NewGraphJob(f, hex.EncodeToString(sum[:])), []string{note}, nil
}

// JoinProfiles returns the texts of profiles, one after another, as the text of
// one, and a name for it: perseus verify joins them in the same way. It fails
// where their headers differ.
func JoinProfiles(texts [][]byte, names []string) ([]byte, string, error) {
	if len(texts) == 1 {
		return texts[0], names[0], nil
	}
	var joined []byte
	header := ""
	for i, text := range texts {
		text = bytes.TrimPrefix(text, []byte("\ufeff"))
		line, _, _ := strings.Cut(string(text[:min(len(text), 1<<16)]), "\n")
		line = strings.TrimSpace(line)
		if i == 0 {
			header = line
		} else if line != header {
			return nil, "", fmt.Errorf("%s:1: the header is %.80q, but that of %s is %.80q: profiles that are taken as one need the same", names[i], line, names[0], header)
		}
		joined = append(joined, text...)
		if n := len(joined); n > 0 && joined[n-1] != '\n' {
			joined = append(joined, '\n')
		}
	}
	return joined, strings.Join(names, "+"), nil
}
