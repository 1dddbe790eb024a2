// Package verify verifies a webhook of the Partner Finance Quote Service. Go 1.21 or later, no dependencies.
package verify

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const toleranceSeconds = 300

// ErrNotOurs says that a request was not signed with any of the keys, or too long ago: answer 401.
var ErrNotOurs = errors.New("no signature fits a key, or it is too old")

var base64Of32Bytes = regexp.MustCompile(`^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$`)

// ReadSecrets returns the secrets in a text, separated by white space. Call it when your receiver starts. It is an error when
// there is none, or one is malformed.
func ReadSecrets(text string) ([]string, error) {
	secrets := strings.Fields(text)
	_, err := keysOf(secrets, "whsec_")
	return secrets, err
}

// ReadPublicKeys does the same for public keys.
func ReadPublicKeys(text string) ([]string, error) {
	publicKeys := strings.Fields(text)
	_, err := keysOf(publicKeys, "whpk_")
	return publicKeys, err
}

// keysOf returns the bytes of keys. Whoever knows an empty or guessable key can sign, so nothing but 32 bytes in base64 is a key.
// The error does not show it.
func keysOf(texts []string, prefix string) ([][]byte, error) {
	if len(texts) == 0 {
		return nil, fmt.Errorf("there is no %s key: is the variable that should contain it unset or empty?", prefix)
	}
	var keys [][]byte
	for _, text := range texts {
		encoded, found := strings.CutPrefix(text, prefix)
		if !found {
			return nil, fmt.Errorf("a key does not begin with %s: is it a placeholder, or in quotes?", prefix)
		}
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || !base64Of32Bytes.MatchString(encoded) {
			return nil, fmt.Errorf("behind %s must come 32 bytes in base64, 44 characters: was the key cut off?", prefix)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// VerifyServiceSignature checks `Service-Signature: t=…,v1=…`: HMAC-SHA256 of `<t>.<body>` in hex, one v1 for each of
// our live secrets. Unless it returns nil the request is not ours, or a secret is malformed.
func VerifyServiceSignature(body []byte, header string, secrets []string, now time.Time) error {
	keys, err := keysOf(secrets, "whsec_")
	if err != nil {
		return err
	}
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
	if isFresh(timestamp, now) && anyMatches(given, keys, timestamp+".", body) {
		return nil
	}
	return ErrNotOurs
}

// VerifyStandardWebhook checks the Standard Webhooks headers: HMAC-SHA256 of `<id>.<timestamp>.<body>` in base64, `v1,…`
// separated by spaces.
func VerifyStandardWebhook(body []byte, id, timestamp, signature string, secrets []string, now time.Time) error {
	keys, err := keysOf(secrets, "whsec_")
	if err != nil {
		return err
	}
	if isID(id) && isFresh(timestamp, now) && anyMatches(signaturesOf(signature, "v1"), keys, id+"."+timestamp+".", body) {
		return nil
	}
	return ErrNotOurs
}

// VerifyWithPublicKeys checks the same headers without a shared secret: Ed25519 over the same in base64, `v1a,…`; the keys of
// `GET /v1/webhook-keys`.
func VerifyWithPublicKeys(body []byte, id, timestamp, signature string, publicKeys []string, now time.Time) error {
	keys, err := keysOf(publicKeys, "whpk_")
	if err != nil {
		return err
	}
	if !isID(id) || !isFresh(timestamp, now) {
		return ErrNotOurs
	}
	signed := append([]byte(id+"."+timestamp+"."), body...)
	for _, key := range keys {
		for _, one := range signaturesOf(signature, "v1a") {
			if ed25519.Verify(key, signed, one) {
				return nil
			}
		}
	}
	return ErrNotOurs
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

// isID refuses a point: what is signed has points between its parts, so one in the id would let somebody divide it differently.
func isID(id string) bool {
	return id != "" && !strings.Contains(id, ".")
}

func isFresh(timestamp string, now time.Time) bool {
	seconds, err := strconv.ParseUint(timestamp, 10, 40)
	if err != nil {
		return false
	}
	age := now.Unix() - int64(seconds)
	return -toleranceSeconds <= age && age <= toleranceSeconds
}

func anyMatches(given, keys [][]byte, prefix string, body []byte) bool {
	for _, key := range keys {
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
