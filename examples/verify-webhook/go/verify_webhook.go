// Verifies a webhook of the Partner Finance Quote Service. Go 1.21 or later, no dependencies.
package main

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

const toleranceSeconds = 300

// VerifyServiceSignature checks `Service-Signature: t=…,v1=…`: HMAC-SHA256 of `<t>.<body>` in hex, one v1 for each of
// our live secrets.
func VerifyServiceSignature(body []byte, header string, secrets []string, now time.Time) bool {
	timestamp := ""
	var given [][]byte
	for _, part := range strings.Split(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			timestamp = value
		case "v1":
			if signature, err := hex.DecodeString(value); err == nil {
				given = append(given, signature)
			}
		}
	}
	return isFresh(timestamp, now) && anyMatches(given, secrets, timestamp+".", body)
}

// VerifyStandardWebhook checks the Standard Webhooks headers: HMAC-SHA256 of `<id>.<timestamp>.<body>` in base64, `v1,…`
// separated by spaces.
func VerifyStandardWebhook(body []byte, id, timestamp, signature string, secrets []string, now time.Time) bool {
	return isFresh(timestamp, now) && anyMatches(signaturesOf(signature, "v1"), secrets, id+"."+timestamp+".", body)
}

// VerifyWithPublicKeys checks the same headers without a shared secret: Ed25519 over the same in base64, `v1a,…`; the keys of
// `GET /v1/webhook-keys`.
func VerifyWithPublicKeys(body []byte, id, timestamp, signature string, publicKeys []string, now time.Time) bool {
	if !isFresh(timestamp, now) {
		return false
	}
	signed := append([]byte(id+"."+timestamp+"."), body...)
	for _, publicKey := range publicKeys {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(publicKey, "whpk_"))
		if err != nil || len(key) != ed25519.PublicKeySize {
			continue
		}
		for _, one := range signaturesOf(signature, "v1a") {
			if ed25519.Verify(key, signed, one) {
				return true
			}
		}
	}
	return false
}

// signaturesOf decodes the signatures of a version out of `webhook-signature`.
func signaturesOf(header, wanted string) [][]byte {
	var given [][]byte
	for _, part := range strings.Split(header, " ") {
		version, value, _ := strings.Cut(part, ",")
		if one, err := base64.StdEncoding.DecodeString(value); err == nil && version == wanted {
			given = append(given, one)
		}
	}
	return given
}

func isFresh(timestamp string, now time.Time) bool {
	seconds, err := strconv.ParseUint(timestamp, 10, 40)
	if err != nil {
		return false
	}
	age := now.Unix() - int64(seconds)
	return -toleranceSeconds <= age && age <= toleranceSeconds
}

func anyMatches(given [][]byte, secrets []string, prefix string, body []byte) bool {
	for _, secret := range secrets {
		// The key is the bytes of the secret: `whsec_` and base64.
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			continue
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(prefix))
		mac.Write(body)
		expected := mac.Sum(nil)
		for _, signature := range given {
			if hmac.Equal(signature, expected) {
				return true
			}
		}
	}
	return false
}
