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
    long now = env.containsKey("NOW") ? Long.parseLong(env.get("NOW")) : Instant.now().getEpochSecond();
    String own = env.get("SERVICE_SIGNATURE");
    String publicKeys = env.get("PUBLIC_KEYS");
    String id = env.get("WEBHOOK_ID");
    String timestamp = env.get("WEBHOOK_TIMESTAMP");
    String signature = env.get("WEBHOOK_SIGNATURE");
    boolean verified;
    if (own == null && publicKeys != null) {
      List<String> keys = VerifyWebhook.readPublicKeys(publicKeys);
      verified = VerifyWebhook.verifyWithPublicKeys(body, id, timestamp, signature, keys, now);
    } else {
      List<String> secrets = VerifyWebhook.readSecrets(env.get("SECRETS"));
      if (own != null) verified = VerifyWebhook.verifyServiceSignature(body, own, secrets, now);
      else verified = VerifyWebhook.verifyStandardWebhook(body, id, timestamp, signature, secrets, now);
    }
    System.out.println(verified ? "verified" : "refused");
    System.exit(verified ? 0 : 1);
  }
}
