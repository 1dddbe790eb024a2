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

  /**
   * The secrets in a text, separated by white space. Call it when your receiver starts.
   *
   * @throws IllegalArgumentException when there is none, or one is malformed
   */
  public static List<String> readSecrets(String text) {
    return read(text, "whsec_");
  }

  /** The same of public keys. */
  public static List<String> readPublicKeys(String text) {
    return read(text, "whpk_");
  }

  private static List<String> read(String text, String prefix) {
    List<String> keys = text == null || text.isBlank() ? List.of() : List.of(text.strip().split("\\s+"));
    keysOf(keys, prefix);
    return keys;
  }

  /**
   * The bytes of keys. Whoever knows an empty or guessable key can sign, so nothing but 32 bytes in base64 is a key. The exception
   * does not show it.
   */
  private static List<byte[]> keysOf(List<String> texts, String prefix) {
    if (texts.isEmpty())
      throw new IllegalArgumentException(
          "there is no " + prefix + " key: is the variable that should contain it unset or empty?");
    List<byte[]> keys = new ArrayList<>();
    for (String text : texts) {
      if (text == null || !text.startsWith(prefix))
        throw new IllegalArgumentException(
            "a key does not begin with " + prefix + ": is it a placeholder, or in quotes?");
      String encoded = text.substring(prefix.length());
      if (!encoded.matches("[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]="))
        throw new IllegalArgumentException(
            "behind " + prefix + " must come 32 bytes in base64, 44 characters: was the key cut off?");
      keys.add(Base64.getDecoder().decode(encoded));
    }
    return keys;
  }

  /** {@code Service-Signature: t=…,v1=…}: HMAC-SHA256 of {@code <t>.<body>} in hex, one v1 for each of our live secrets. */
  public static boolean verifyServiceSignature(byte[] body, String header, List<String> secrets, long now) {
    List<byte[]> keys = keysOf(secrets, "whsec_");
    String timestamp = "";
    List<byte[]> given = new ArrayList<>();
    for (String part : header.split(",")) {
      String[] pair = part.trim().split("=", 2);
      if (pair.length == 2 && pair[0].equals("t")) timestamp = pair[1];
      if (pair.length == 2 && pair[0].equals("v1")) given.add(ascii(pair[1]));
    }
    if (!isFresh(timestamp, now)) return false;
    for (byte[] key : keys) {
      byte[] expected = ascii(HexFormat.of().formatHex(hmac(key, timestamp + ".", body)));
      for (byte[] signature : given) if (MessageDigest.isEqual(signature, expected)) return true;
    }
    return false;
  }

  /** Standard Webhooks: HMAC-SHA256 of {@code <id>.<timestamp>.<body>} in base64, {@code v1,…} separated by spaces. */
  public static boolean verifyStandardWebhook(
      byte[] body, String id, String timestamp, String signature, List<String> secrets, long now) {
    List<byte[]> keys = keysOf(secrets, "whsec_");
    if (!isId(id) || !isFresh(timestamp, now)) return false;
    for (byte[] key : keys) {
      byte[] mac = hmac(key, id + "." + timestamp + ".", body);
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
    List<byte[]> keys = keysOf(publicKeys, "whpk_");
    if (!isId(id) || !isFresh(timestamp, now)) return false;
    for (byte[] key : keys) {
      for (String one : signature.split(" "))
        if (one.startsWith("v1a,") && ed25519Holds(key, one.substring(4), id + "." + timestamp + ".", body)) return true;
    }
    return false;
  }

  private static boolean ed25519Holds(byte[] key, String signature, String prefix, byte[] body) {
    try {
      // X.509's head for an Ed25519 key (RFC 8410), then the 32 bytes behind whpk_.
      byte[] head = HexFormat.of().parseHex("302a300506032b6570032100");
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

  /** What is signed has points between its parts, so a point in the id would let somebody divide it differently. */
  private static boolean isId(String id) {
    return !id.isEmpty() && !id.contains(".");
  }

  private static boolean isFresh(String timestamp, long now) {
    return timestamp.matches("[0-9]{1,12}") && Math.abs(now - Long.parseLong(timestamp)) <= TOLERANCE_SECONDS;
  }

  private static byte[] hmac(byte[] key, String prefix, byte[] body) {
    try {
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
