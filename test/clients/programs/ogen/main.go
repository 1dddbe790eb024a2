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

type key string

func (k key) ApiKey(context.Context, client.OperationName) (client.ApiKey, error) {
	return client.ApiKey{Token: string(k)}, nil
}

func main() {
	ctx, env := context.Background(), os.Getenv
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must(os.ReadFile(env("CA_FILE"))))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	api := must(client.NewClient(env("BASE_URL"), key(env("API_KEY")), client.WithClient(&http.Client{Transport: transport})))

	quote := func(merchant string) client.GetFinanceQuoteRes {
		return must(api.GetFinanceQuote(ctx, &client.QuoteRequest{
			MerchantID:         merchant,
			PartnerID:          env("PARTNER_ID"),
			LoanAmount:         "900.00",
			CustomerDeposit:    client.NewOptNilString("100.00"),
			MerchantFinanceURL: "https://shop.example/finance",
		}, client.GetFinanceQuoteParams{}))
	}
	got := quote("M000001").(*client.QuoteResponseHeaders).Response.Data
	refused := quote("M999999").(*client.GetFinanceQuoteNotFound).Response.Error
	listed := []string{}
	page := must(api.ListNotifications(ctx, client.ListNotificationsParams{Limit: client.NewOptInt(5)}))
	for _, one := range page.(*client.NotificationListResponseHeaders).Response.Data.Notifications {
		listed = append(listed, one.NotificationID)
	}
	read := must(api.GetNotification(ctx, client.GetNotificationParams{NotificationID: env("NOTIFICATION_ID")}))
	one := read.(*client.NotificationResponseHeaders).Response.Data
	asked := client.GetCreditApplicationParams{CreditApplicationID: env("APPLICATION_ID")}
	hidden := must(api.GetCreditApplication(ctx, asked)).(*client.GetCreditApplicationNotFound).Response.Error
	var event client.ReceiveCreditApplicationEventReq
	must(0, event.UnmarshalJSON([]byte(one.Payload.Value)))
	must(0, json.NewEncoder(os.Stdout).Encode(map[string]any{
		"quote":   []any{got.Summary.Display, got.Products[0].CustomerDeposit},
		"listed":  listed,
		"refused": []any{404, refused.Code, refused.Details.Value.MerchantID.Value},
		"state":   []any{one.Status, one.EventType, one.AttemptLog[0].Failure.Value},
		"code":    []any{404, hidden.Code},
		"event":   event.Data.Status,
	}))
}
