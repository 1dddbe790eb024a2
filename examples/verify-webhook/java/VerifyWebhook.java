// Verifies a webhook of the Partner Finance Quote Service. Java 17 or later, no dependencies.
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.X509EncodedKeySpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public final class VerifyWebhook {
  private static final long TOLERANCE_SECONDS = 300;

  private VerifyWebhook() {}

  /** {@code Service-Signature: t=…,v1=…}: HMAC-SHA256 of {@code <t>.<body>} in hex, one v1 for each of our live secrets. */
  public static boolean verifyServiceSignature(byte[] body, String header, List<String> secrets, long now) {
    String timestamp = "";
    List<byte[]> given = new ArrayList<>();
    for (String part : header.split(",")) {
      String[] pair = part.trim().split("=", 2);
      if (pair.length == 2 && pair[0].equals("t")) timestamp = pair[1];
      if (pair.length == 2 && pair[0].equals("v1")) given.add(ascii(pair[1]));
    }
    if (!isFresh(timestamp, now)) return false;
    for (String secret : secrets) {
      byte[] expected = ascii(HexFormat.of().formatHex(hmac(secret, timestamp + ".", body)));
      for (byte[] signature : given) if (MessageDigest.isEqual(signature, expected)) return true;
    }
    return false;
  }

  /** Standard Webhooks: HMAC-SHA256 of {@code <id>.<timestamp>.<body>} in base64, {@code v1,…} separated by spaces. */
  public static boolean verifyStandardWebhook(
      byte[] body, String id, String timestamp, String signature, List<String> secrets, long now) {
    if (!isFresh(timestamp, now)) return false;
    for (String secret : secrets) {
      byte[] mac = hmac(secret, id + "." + timestamp + ".", body);
      byte[] expected = ascii("v1," + Base64.getEncoder().encodeToString(mac));
      for (String one : signature.split(" ")) if (MessageDigest.isEqual(ascii(one), expected)) return true;
    }
    return false;
  }

  /**
   * Standard Webhooks without a shared secret: Ed25519 over the same in base64, {@code v1a,…}; the keys of {@code GET /v1/webhook-keys}.
   */
  public static boolean verifyWithPublicKeys(
      byte[] body, String id, String timestamp, String signature, List<String> publicKeys, long now) {
    if (!isFresh(timestamp, now)) return false;
    for (String publicKey : publicKeys) {
      for (String one : signature.split(" "))
        if (one.startsWith("v1a,") && ed25519Holds(publicKey, one.substring(4), id + "." + timestamp + ".", body)) return true;
    }
    return false;
  }

  private static boolean ed25519Holds(String publicKey, String signature, String prefix, byte[] body) {
    try {
      // X.509's head for an Ed25519 key (RFC 8410), then the 32 bytes behind whpk_.
      byte[] head = HexFormat.of().parseHex("302a300506032b6570032100");
      byte[] key = Base64.getDecoder().decode(publicKey.replaceFirst("^whpk_", ""));
      byte[] encoded = Arrays.copyOf(head, head.length + key.length);
      System.arraycopy(key, 0, encoded, head.length, key.length);
      PublicKey known = KeyFactory.getInstance("Ed25519").generatePublic(new X509EncodedKeySpec(encoded));
      Signature verifier = Signature.getInstance("Ed25519");
      verifier.initVerify(known);
      verifier.update(prefix.getBytes(StandardCharsets.UTF_8));
      verifier.update(body);
      return verifier.verify(Base64.getDecoder().decode(signature));
    } catch (GeneralSecurityException | IllegalArgumentException malformed) {
      return false;
    }
  }

  private static boolean isFresh(String timestamp, long now) {
    return timestamp.matches("[0-9]{1,12}") && Math.abs(now - Long.parseLong(timestamp)) <= TOLERANCE_SECONDS;
  }

  /** The key is the bytes of the secret: {@code whsec_} and base64. */
  private static byte[] hmac(String secret, String prefix, byte[] body) {
    try {
      byte[] key = Base64.getDecoder().decode(secret.replaceFirst("^whsec_", ""));
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(key, "HmacSHA256"));
      mac.update(prefix.getBytes(StandardCharsets.UTF_8));
      return mac.doFinal(body);
    } catch (GeneralSecurityException fault) {
      throw new IllegalStateException(fault);
    }
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
