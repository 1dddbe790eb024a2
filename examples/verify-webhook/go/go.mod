module webhook.example/verify

go 1.21
