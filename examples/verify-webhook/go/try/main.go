// Tries the verifier: the raw body on standard input, the rest in the environment (see ../../README.md).
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	verify "webhook.example/verify"
)

func main() {
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	now := time.Now()
	if seconds, err := strconv.ParseInt(os.Getenv("NOW"), 10, 64); err == nil {
		now = time.Unix(seconds, 0)
	}
	switch err := verified(body, now); {
	case err == nil:
		fmt.Println("verified")
	case errors.Is(err, verify.ErrNotOurs):
		fmt.Println("refused")
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func verified(body []byte, now time.Time) error {
	id, timestamp, signature := os.Getenv("WEBHOOK_ID"), os.Getenv("WEBHOOK_TIMESTAMP"), os.Getenv("WEBHOOK_SIGNATURE")
	header, own := os.LookupEnv("SERVICE_SIGNATURE")
	if text, public := os.LookupEnv("PUBLIC_KEYS"); public && !own {
		keys, err := verify.ReadPublicKeys(text)
		if err != nil {
			return err
		}
		return verify.VerifyWithPublicKeys(body, id, timestamp, signature, keys, now)
	}
	secrets, err := verify.ReadSecrets(os.Getenv("SECRETS"))
	if err != nil {
		return err
	}
	if own {
		return verify.VerifyServiceSignature(body, header, secrets, now)
	}
	return verify.VerifyStandardWebhook(body, id, timestamp, signature, secrets, now)
}
