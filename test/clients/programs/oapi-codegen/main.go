// A quote, a list, refusals with their typed errors, and values that this client does not know. Prints what it saw.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"

	"example.com/client/client"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	ctx, env := context.Background(), os.Getenv
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must(os.ReadFile(env("CA_FILE"))))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	withKey := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+env("API_KEY"))
		return nil
	}
	api := must(client.NewClientWithResponses(env("BASE_URL"),
		client.WithHTTPClient(&http.Client{Transport: transport}), client.WithRequestEditorFn(withKey)))

	quote := func(merchant string) *client.GetFinanceQuoteResponse {
		deposit := "100.00"
		body := client.QuoteRequest{
			MerchantId:         merchant,
			PartnerId:          env("PARTNER_ID"),
			LoanAmount:         "900.00",
			CustomerDeposit:    &deposit,
			MerchantFinanceUrl: "https://shop.example/finance",
		}
		return must(api.GetFinanceQuoteWithResponse(ctx, nil, body))
	}
	got, refused := quote("M000001").JSON200.Data, quote("M999999")
	limit := 5
	listed := []string{}
	for _, one := range must(api.ListNotificationsWithResponse(ctx, &client.ListNotificationsParams{Limit: &limit})).JSON200.Data.Notifications {
		listed = append(listed, one.NotificationId)
	}
	one := must(api.GetNotificationWithResponse(ctx, env("NOTIFICATION_ID"), nil)).JSON200.Data
	hidden := must(api.GetCreditApplicationWithResponse(ctx, env("APPLICATION_ID"), nil))
	var event client.ReceiveCreditApplicationEventJSONRequestBody
	must(0, json.Unmarshal([]byte(*one.Payload), &event))
	must(0, json.NewEncoder(os.Stdout).Encode(map[string]any{
		"quote":   []any{got.Summary.Display, got.Products[0].CustomerDeposit},
		"listed":  listed,
		"refused": []any{refused.StatusCode(), refused.JSON404.Error.Code, *refused.JSON404.Error.Details.MerchantId},
		"state":   []any{one.Status, one.EventType, *(*one.AttemptLog)[0].Failure},
		"code":    []any{hidden.StatusCode(), hidden.JSON404.Error.Code},
		"event":   event.Data.Status,
	}))
}
