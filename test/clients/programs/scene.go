package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
)

var env = os.Getenv

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func overTLS() *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must(os.ReadFile(env("CA_FILE"))))
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
}

func show(saw map[string]any) {
	must(0, json.NewEncoder(os.Stdout).Encode(saw))
}
