"""Receives OTLP over HTTP, and says over HTTP what came to. OTLP is read by the messages of its own
schema: a field that is not in it is an error."""

import collections
import http.server
import json

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

otlp, errors = collections.Counter(), []


def take(request):
    for resource in request.resource_metrics:
        run = {one.key: one.value.string_value for one in resource.resource.attributes}
        otlp["named"] += run["service.name"] == "throng" and "run" in run
        for metric in (one for scope in resource.scope_metrics for one in scope.metrics):
            for point in metric.sum.data_points:
                labels = {one.key: one.value.string_value for one in point.attributes}
                kind = labels.get("result") or labels.get("state") or ""
                otlp[f"{metric.name} {kind}"] += point.as_double
            for point in metric.histogram.data_points:
                assert sum(point.bucket_counts) == point.count
                assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
                otlp[metric.name] += point.count


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            take(json_format.Parse(body, ExportMetricsServiceRequest()))
        except Exception as error:  # the test looks at them
            errors.append(repr(error))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def do_GET(self):
        text = json.dumps({"otlp": otlp, "errors": errors}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print("listening", server.server_port, flush=True)
server.serve_forever()
