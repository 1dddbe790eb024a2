import java.io.IOException;
import java.time.Instant;
import java.util.List;
import java.util.Map;

/** Tries the verifier: the raw body on standard input, the rest in the environment (see ../README.md). */
final class TryWebhook {
  private TryWebhook() {}

  public static void main(String[] arguments) throws IOException {
    Map<String, String> env = System.getenv();
    byte[] body = System.in.readAllBytes();
    List<String> secrets = List.of(env.get("SECRETS").split(" "));
    long now = env.containsKey("NOW") ? Long.parseLong(env.get("NOW")) : Instant.now().getEpochSecond();
    String own = env.get("SERVICE_SIGNATURE");
    boolean verified =
        own != null
            ? VerifyWebhook.verifyServiceSignature(body, own, secrets, now)
            : VerifyWebhook.verifyStandardWebhook(
                body, env.get("WEBHOOK_ID"), env.get("WEBHOOK_TIMESTAMP"), env.get("WEBHOOK_SIGNATURE"), secrets, now);
    System.out.println(verified ? "verified" : "refused");
    System.exit(verified ? 0 : 1);
  }
}
