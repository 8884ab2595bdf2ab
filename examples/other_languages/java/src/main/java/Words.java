import becket.*;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.util.List;
import java.util.Map;

/** An extension with one tool, which counts the words of a text and keeps the count in the host's memory. */
public final class Words {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final InputStream in = System.in;
    private final PrintStream out = System.out;
    private String id = "";
    private int calls = 0;

    public static void main(String[] arguments) throws IOException {
        Words extension = new Words();
        System.setOut(System.err); // what is printed from now on does not get between the frames
        for (JsonNode message = extension.receive(); message != null; message = extension.receive()) {
            extension.respond(message);
        }
    }

    private void respond(JsonNode message) throws IOException {
        if (!message.has("id") || !message.has("method")) {
            return; // a notification, or a response to a request that is not pending
        }
        String method = message.get("method").asText();
        JsonNode result = JSON.valueToTree(handle(method, message.path("params")));
        String member = result.has("code") ? "error" : "result";
        send(JSON.createObjectNode().put("jsonrpc", "2.0").<ObjectNode>set("id", message.get("id")).set(member, result));
        if (method.equals("shutdown")) {
            System.exit(0);
        }
    }

    /** Returns the result of a request, or an ErrorObject. */
    private Object handle(String method, JsonNode params) throws IOException {
        switch (method) {
            case "initialize":
                id = JSON.treeToValue(params, Initialize.class).getPluginId();
                Map<String, Object> schema = Map.of("type", "object", "required", List.of("text"),
                    "properties", Map.of("text", Map.of("type", "string")));
                Tool count = JSON.convertValue(Map.of("name", "count",
                    "description", "Counts the words of a text.", "input_schema", schema), Tool.class);
                return new Initialized().withProtocolVersion(1L)
                    .withCapabilities(new Capabilities().withTools(List.of(count)));
            case "tool.call":
                ToolCall call = JSON.treeToValue(params, ToolCall.class);
                if (!call.getName().equals("count")) {
                    return new ErrorObject().withCode(-32602).withMessage("unknown tool: " + call.getName());
                }
                String text = String.valueOf(call.getInput().getAdditionalProperties().get("text")).strip();
                int words = text.isEmpty() ? 0 : text.split("\\s+").length;
                remember(words + " words");
                return words;
            case "shutdown":
                return null;
            default:
                return new ErrorObject().withCode(-32601).withMessage("unknown method: " + method);
        }
    }

    /** Appends to the host's memory, and handles the requests that arrive before the response. */
    private void remember(String content) throws IOException {
        Append append = new Append().withNamespace(id).withContent(content).withTags(List.of("words"));
        send(JSON.createObjectNode().put("jsonrpc", "2.0").put("id", ++calls).put("method", "memory.append")
            .set("params", JSON.valueToTree(append)));
        for (JsonNode message = receive(); message != null && message.has("method"); message = receive()) {
            respond(message);
        }
    }

    private JsonNode receive() throws IOException {
        StringBuilder header = new StringBuilder();
        while (header.indexOf("\r\n\r\n") < 0) {
            int next = in.read();
            if (next < 0) {
                return null; // the host is gone
            }
            header.append((char) next);
        }
        String length = header.toString().replaceAll("(?is).*content-length: *(\\d+).*", "$1");
        return JSON.readTree(in.readNBytes(Integer.parseInt(length)));
    }

    private void send(JsonNode message) throws IOException {
        byte[] body = JSON.writeValueAsBytes(message);
        out.writeBytes(("Content-Length: " + body.length + "\r\n\r\n").getBytes());
        out.write(body);
        out.flush();
    }
}
