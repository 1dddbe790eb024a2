// Tries the verifier: the raw body on standard input, the rest in the environment (see ../README.md).
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
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
	switch err := verify(body, now); {
	case err == nil:
		fmt.Println("verified")
	case errors.Is(err, ErrNotOurs):
		fmt.Println("refused")
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func verify(body []byte, now time.Time) error {
	id, timestamp, signature := os.Getenv("WEBHOOK_ID"), os.Getenv("WEBHOOK_TIMESTAMP"), os.Getenv("WEBHOOK_SIGNATURE")
	header, own := os.LookupEnv("SERVICE_SIGNATURE")
	if text, public := os.LookupEnv("PUBLIC_KEYS"); public && !own {
		keys, err := ReadPublicKeys(text)
		if err != nil {
			return err
		}
		return VerifyWithPublicKeys(body, id, timestamp, signature, keys, now)
	}
	secrets, err := ReadSecrets(os.Getenv("SECRETS"))
	if err != nil {
		return err
	}
	if own {
		return VerifyServiceSignature(body, header, secrets, now)
	}
	return VerifyStandardWebhook(body, id, timestamp, signature, secrets, now)
}
