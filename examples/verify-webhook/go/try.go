// Tries the verifier: the raw body on standard input, the rest in the environment (see ../README.md).
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
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
	secrets := strings.Split(os.Getenv("SECRETS"), " ")
	verified := false
	if header, own := os.LookupEnv("SERVICE_SIGNATURE"); own {
		verified = VerifyServiceSignature(body, header, secrets, now)
	} else {
		id, timestamp, signature := os.Getenv("WEBHOOK_ID"), os.Getenv("WEBHOOK_TIMESTAMP"), os.Getenv("WEBHOOK_SIGNATURE")
		if keys, public := os.LookupEnv("PUBLIC_KEYS"); public {
			verified = VerifyWithPublicKeys(body, id, timestamp, signature, strings.Split(keys, " "), now)
		} else {
			verified = VerifyStandardWebhook(body, id, timestamp, signature, secrets, now)
		}
	}
	if !verified {
		fmt.Println("refused")
		os.Exit(1)
	}
	fmt.Println("verified")
}
