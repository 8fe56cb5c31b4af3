module github.com/perseus-energy/perseus

go 1.26
