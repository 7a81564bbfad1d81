// Two servers of others, on 127.0.0.1: grpc-go with a connection age, and Centrifuge with a write
// delay. Each keeps exact books of what it received and sent.
//
//	server grpc|centrifuge PORT ADMIN_PORT [STREAMS]
//
// GET /books on the admin port returns the books as JSON. GET /restart closes the listener and all
// connections, and listens again 300 ms later. GET /leave does so gracefully: grpc-go answers what
// it has accepted, and Centrifuge closes half of its connections with a code. GET /cut resets half of
// the connections.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/centrifugal/centrifuge"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Books counts by name, and remembers which IDs came more than once.
type Books struct {
	mutex  sync.Mutex
	counts map[string]int
	seen   map[string]bool
}

func (books *Books) add(name string) {
	books.mutex.Lock()
	defer books.mutex.Unlock()
	books.counts[name]++
}

// addID counts a message, and counts it as "NAME again" if its ID is known.
func (books *Books) addID(name, id string) {
	books.mutex.Lock()
	defer books.mutex.Unlock()
	books.counts[name]++
	if books.seen[name+id] {
		books.counts[name+" again"]++
	}
	books.seen[name+id] = true
}

// How many streams grpc-go allows on a connection. It refuses more.
var streams = uint32(100)

var books = Books{counts: map[string]int{}, seen: map[string]bool{}}

// Gate is a listener whose connections can all be closed.
type Gate struct {
	net.Listener
	mutex sync.Mutex
	open  map[*conn]bool
}

type conn struct {
	net.Conn
	gate *Gate
}

func listen(address string) *Gate {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	return &Gate{Listener: listener, open: map[*conn]bool{}}
}

func (gate *Gate) Accept() (net.Conn, error) {
	accepted, err := gate.Listener.Accept()
	if err != nil {
		return nil, err
	}
	books.add("connections")
	one := &conn{accepted, gate}
	gate.mutex.Lock()
	defer gate.mutex.Unlock()
	gate.open[one] = true
	return one, nil
}

func (one *conn) Close() error {
	one.gate.mutex.Lock()
	delete(one.gate.open, one)
	one.gate.mutex.Unlock()
	return one.Conn.Close()
}

// Write counts the records that one WebSocket message joins.
func (one *conn) Write(bytes []byte) (int, error) {
	for range strings.Count(string(bytes), "}\n{") {
		books.add("joined")
	}
	return one.Conn.Write(bytes)
}

// cut resets one of so many connections.
func (gate *Gate) cut(every int) {
	gate.mutex.Lock()
	var chosen []*conn
	for one := range gate.open {
		chosen = append(chosen, one)
	}
	gate.mutex.Unlock()
	for n, one := range chosen {
		if n%every == 0 {
			one.Conn.(*net.TCPConn).SetLinger(0)
			one.Conn.Close()
			books.add("cut")
		}
	}
}

func main() {
	address := "127.0.0.1:" + os.Args[2]
	if len(os.Args) > 4 {
		number, err := strconv.ParseUint(os.Args[4], 10, 32)
		if err != nil {
			log.Fatal(err)
		}
		streams = uint32(number)
	}
	serve := serveGrpc
	if os.Args[1] == "centrifuge" {
		serve = centrifugeServer()
	}
	gate := listen(address)
	stop := serve(gate)
	http.HandleFunc("/books", func(w http.ResponseWriter, _ *http.Request) {
		books.mutex.Lock()
		defer books.mutex.Unlock()
		json.NewEncoder(w).Encode(books.counts)
	})
	http.HandleFunc("/cut", func(http.ResponseWriter, *http.Request) { gate.cut(2) })
	http.HandleFunc("/restart", func(http.ResponseWriter, *http.Request) {
		stop(false)
		gate.cut(1)
		time.Sleep(300 * time.Millisecond)
		gate = listen(address)
		stop = serve(gate)
	})
	http.HandleFunc("/leave", func(http.ResponseWriter, *http.Request) {
		if stop(true) {
			gate = listen(address)
			stop = serve(gate)
		}
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[3], nil))
}

func say(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	request := new(wrapperspb.StringValue)
	if err := decode(request); err != nil {
		books.add("calls without a message")
		return nil, err
	}
	books.addID("calls", request.Value)
	time.Sleep(2 * time.Millisecond)
	return wrapperspb.Int64(1), nil
}

func count(_ any, stream grpc.ServerStream) error {
	books.add("streams")
	request := new(wrapperspb.Int64Value)
	if err := stream.RecvMsg(request); err != nil {
		books.add("streams without a message")
		return err
	}
	for n := int64(1); n <= request.Value; n++ {
		if err := stream.SendMsg(wrapperspb.Int64(n)); err != nil {
			books.add("streams cut")
			return err
		}
		books.add("replies")
		time.Sleep(100 * time.Millisecond)
	}
	books.add("streams ended")
	return nil
}

// serveGrpc returns what stops the server, and says whether it no longer listens.
func serveGrpc(gate *Gate) func(bool) bool {
	server := grpc.NewServer(
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: time.Second, MaxConnectionAgeGrace: 2 * time.Second,
		}),
		grpc.MaxConcurrentStreams(streams),
	)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "strangers.v1.Calls",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Say", Handler: say}},
		Streams:     []grpc.StreamDesc{{StreamName: "Count", Handler: count, ServerStreams: true}},
	}, nil)
	go server.Serve(gate)
	return func(gracefully bool) bool {
		if gracefully {
			server.GracefulStop()
		} else {
			server.Stop()
		}
		return true
	}
}

func centrifugeServer() func(*Gate) func(bool) bool {
	node, err := centrifuge.New(centrifuge.Config{})
	if err != nil {
		log.Fatal(err)
	}
	node.OnConnecting(func(context.Context, centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) {
		return centrifuge.ConnectReply{
			Credentials: &centrifuge.Credentials{},
			// What is due within this time is joined into one WebSocket message.
			WriteDelay: 20 * time.Millisecond,
			PingPongConfig: &centrifuge.PingPongConfig{
				PingInterval: 2 * time.Second, PongTimeout: 1900 * time.Millisecond,
			},
		}, nil
	})
	node.OnConnect(func(client *centrifuge.Client) {
		books.add("logins")
		client.OnSubscribe(func(_ centrifuge.SubscribeEvent, done centrifuge.SubscribeCallback) {
			books.add("subscribed")
			done(centrifuge.SubscribeReply{}, nil)
		})
		client.OnPublish(func(event centrifuge.PublishEvent, done centrifuge.PublishCallback) {
			books.addID("published", string(event.Data))
			done(centrifuge.PublishReply{}, nil)
		})
		client.OnDisconnect(func(event centrifuge.DisconnectEvent) {
			books.add("disconnected " + event.Reason)
		})
	})
	node.OnTransportWrite(func(_ *centrifuge.Client, event centrifuge.TransportWriteEvent) bool {
		books.add("wrote " + event.FrameType.String())
		return true
	})
	if err := node.Run(); err != nil {
		log.Fatal(err)
	}
	handler := http.NewServeMux()
	handler.Handle("/connection/websocket", centrifuge.NewWebsocketHandler(node, centrifuge.WebsocketConfig{}))
	return func(gate *Gate) func(bool) bool {
		server := &http.Server{Handler: handler}
		go server.Serve(gate)
		return func(gracefully bool) bool {
			if gracefully {
				n := 0
				for _, client := range node.Hub().Connections() {
					if n++; n%2 == 0 {
						books.add("left")
						client.Disconnect(centrifuge.DisconnectForceReconnect)
					}
				}
				return false
			}
			server.Close()
			return true
		}
	}
}
