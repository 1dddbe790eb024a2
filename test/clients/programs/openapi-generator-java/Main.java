import java.io.FileInputStream;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.JSON;
import org.openapitools.client.api.ApplicationsApi;
import org.openapitools.client.api.NotificationsApi;
import org.openapitools.client.api.QuotesApi;
import org.openapitools.client.model.*;

/** A quote, a list, refusals with their typed errors, and values that this client does not know. Prints what it saw. */
public class Main {
  interface Call { void run() throws ApiException; }

  static List<Object> refused(Call call) throws Exception {
    try {
      call.run();
    } catch (ApiException exception) {
      ErrorResponseError error = ErrorResponse.fromJson(exception.getResponseBody()).getError();
      ErrorDetails details = error.getDetails();
      String merchant = details.getMerchantId();
      return merchant == null ? List.of(exception.getCode(), error.getCode()) : List.of(exception.getCode(), error.getCode(), merchant);
    }
    throw new IllegalStateException("it was not refused");
  }

  public static void main(String[] arguments) throws Exception {
    Map<String, String> env = System.getenv();
    ApiClient client = new ApiClient();
    client.setBasePath(env.get("BASE_URL"));
    client.setBearerToken(env.get("API_KEY"));
    client.setSslCaCert(new FileInputStream(env.get("CA_FILE")));
    QuotesApi quotes = new QuotesApi(client);
    NotificationsApi notifications = new NotificationsApi(client);
    ApplicationsApi applications = new ApplicationsApi(client);

    QuoteRequest request = new QuoteRequest()
        .merchantId("M000001")
        .partnerId(env.get("PARTNER_ID"))
        .loanAmount("900.00")
        .customerDeposit("100.00")
        .merchantFinanceUrl("https://shop.example/finance");
    QuoteResponseData got = quotes.getFinanceQuote(request, null, null).getData();
    Notification one = notifications.getNotification(env.get("NOTIFICATION_ID"), null, null).getData();
    List<Notification> listed = notifications
        .listNotifications(null, null, null, null, null, null, null, null, 5, null, null, null).getData().getNotifications();
    System.out.println(JSON.getGson().toJson(Map.of(
        "quote", List.of(got.getSummary().getDisplay(), got.getProducts().get(0).getCustomerDeposit()),
        "listed", listed.stream().map(Notification::getNotificationId).collect(Collectors.toList()),
        "refused", refused(() -> quotes.getFinanceQuote(request.merchantId("M999999"), null, null)),
        "state", List.of(one.getStatus(), one.getEventType(), one.getAttemptLog().get(0).getFailure()),
        "code", refused(() -> applications.getCreditApplication(env.get("APPLICATION_ID"), null, null)))));
    System.exit(0);
  }
}
