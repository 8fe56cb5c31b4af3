module github.com/perseus-energy/perseus

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0
	golang.org/x/term v0.48.0
	pgregory.net/rapid v1.3.0
)

require golang.org/x/sys v0.50.0 // indirect
