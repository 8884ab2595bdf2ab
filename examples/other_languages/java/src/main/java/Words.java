import becket.*;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.*;
import java.io.*;
import java.util.*;
import java.util.regex.*;

/** An extension with one tool, which counts the words of a text and keeps the count in the host's memory. */
public final class Words {
    private static final ObjectMapper JSON = new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);
    private static final String OTHERS = "(?:(?!content-length:)[\\w-]+:[^\r\n]*\r\n)*"; // other headers
    private static final Pattern HEADER =
        Pattern.compile("(?i)" + OTHERS + "content-length:[ \t]*(\\d{1,7})[ \t]*\r\n" + OTHERS + "\r\n");
    private final InputStream in = new BufferedInputStream(System.in);
    private final OutputStream out = new FileOutputStream(FileDescriptor.out);
    private String id = "";
    private int calls = 0;

    public static void main(String[] arguments) throws IOException {
        Words words = new Words();
        System.setOut(System.err); // what is printed from now on does not get between the frames
        for (JsonNode message = words.receive(); message != null; message = words.receive()) words.handle(message);
    }

    private void handle(JsonNode message) throws IOException {
        JsonNode id = message.path("id"), method = message.path("method");
        boolean isId = id.isTextual() || id.isNumber();
        boolean isResponse = !message.has("method") && (message.has("result") || message.has("error"));
        if (!message.path("jsonrpc").asText().equals("2.0") || (message.has("id") && !isId && !id.isNull())
                || !(isResponse || method.isTextual())) {
            respond(isId ? id : NullNode.instance, error(-32600, "not a message of JSON-RPC 2.0"));
        } else if (!isResponse && message.has("id")) { // all notifications are ignored
            respond(id, call(method.asText(), message.path("params")));
            if (method.asText().equals("shutdown")) System.exit(0);
        }
    }

    /** Returns the result of a request, or an ErrorObject. */
    private Object call(String method, JsonNode params) throws IOException {
        return switch (method) {
            case "initialize" -> initialize(params);
            case "tool.call" -> callTool(params);
            case "shutdown" -> null;
            default -> error(-32601, "unknown method");
        };
    }

    private Object initialize(JsonNode params) throws IOException {
        if (params.path("extension_protocol_version").asInt() != 1)
            return error(1008, "only version 1 is supported").withData(Map.of("supported", List.of(1)));
        id = JSON.treeToValue(params, Initialize.class).getPluginId();
        Tool count = JSON.convertValue(Map.of("name", "count", "description", "Counts words.", "input_schema",
            Map.of("type", "object", "properties", Map.of("text", Map.of("type", "string")))), Tool.class);
        return new Initialized().withProtocolVersion(1L).withCapabilities(new Capabilities().withTools(List.of(count)));
    }

    private Object callTool(JsonNode params) throws IOException {
        if (!params.path("name").asText().equals("count")) return error(-32602, "there is no such tool");
        String text = params.path("input").path("text").asText().strip();
        int words = text.isEmpty() ? 0 : text.split("\\s+").length;
        Append append = new Append().withNamespace(id).withContent(words + " words").withTags(List.of("words"));
        send(JSON.createObjectNode().put("id", ++calls).put("method", "memory.append")
            .set("params", JSON.valueToTree(append)));
        for (JsonNode message = receive(); message != null && message.has("method"); message = receive())
            handle(message); // it arrived before the response
        return words;
    }

    private static ErrorObject error(int code, String message) {
        return new ErrorObject().withCode(code).withMessage(message);
    }

    private void respond(JsonNode id, Object outcome) throws IOException {
        send(JSON.createObjectNode().<ObjectNode>set("id", id)
            .set(outcome instanceof ErrorObject ? "error" : "result", JSON.valueToTree(outcome)));
    }

    private void send(ObjectNode message) throws IOException {
        byte[] body = JSON.writeValueAsBytes(message.put("jsonrpc", "2.0"));
        out.write(("Content-Length: " + body.length + "\r\n\r\n").getBytes());
        out.write(body);
    }

    /** Returns the next message that is JSON, or null when stdin ends; a frame that is not valid ends the program. */
    private JsonNode receive() throws IOException {
        StringBuilder header = new StringBuilder();
        for (int next = in.read(); header.append((char) next).indexOf("\r\n\r\n") < 0; next = in.read())
            if (next < 0 || header.length() > 4096) return null;
        Matcher found = HEADER.matcher(header);
        if (!found.matches()) throw new IOException("not a header: " + header);
        try {
            byte[] body = in.readNBytes(Integer.parseInt(found.group(1)));
            return body.length < Integer.parseInt(found.group(1)) ? null : JSON.readValue(body, JsonNode.class);
        } catch (JsonProcessingException wrong) {
            respond(NullNode.instance, error(-32700, "not JSON"));
            return receive();
        }
    }
}
