run_as_root = true
pidfile = "FOLDER/prosody.pid"
data_path = "FOLDER"
log = { debug = "*console" }
modules_enabled = { "saslauth", "websocket", "ping" }
modules_disabled = { "s2s", "tls" }
c2s_ports = {}
s2s_ports = {}
https_ports = {}
http_ports = { PORT }
http_interfaces = { "127.0.0.1" }
consider_websocket_secure = true
VirtualHost "localhost"
  http_host = "127.0.0.1"
  authentication = "anonymous"
