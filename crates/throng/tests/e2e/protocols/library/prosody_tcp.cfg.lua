run_as_root = true
pidfile = "FOLDER/prosody.pid"
data_path = "FOLDER"
certificates = "FOLDER"
log = { debug = "*console" }
interfaces = { "127.0.0.1" }
c2s_ports = { PORT }
modules_enabled = { "saslauth", "tls", "ping", "roster" }
modules_disabled = { "s2s" }
c2s_require_encryption = true
authentication = "internal_hashed"
ssl = { key = "PAPERS/self.key"; certificate = "PAPERS/self.pem" }
VirtualHost "throng.test"
