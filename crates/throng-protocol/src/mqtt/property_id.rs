//! The identifiers of the properties of MQTT 5 (2.2.2.2): one table with the type of each and the
//! packets that may contain it.

use super::kind::PacketType;

/// The identifier of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PropertyId {
    PayloadFormatIndicator = 0x01,
    MessageExpiryInterval = 0x02,
    ContentType = 0x03,
    ResponseTopic = 0x08,
    CorrelationData = 0x09,
    SubscriptionIdentifier = 0x0b,
    SessionExpiryInterval = 0x11,
    AssignedClientIdentifier = 0x12,
    ServerKeepAlive = 0x13,
    AuthenticationMethod = 0x15,
    AuthenticationData = 0x16,
    RequestProblemInformation = 0x17,
    WillDelayInterval = 0x18,
    RequestResponseInformation = 0x19,
    ResponseInformation = 0x1a,
    ServerReference = 0x1c,
    ReasonString = 0x1f,
    ReceiveMaximum = 0x21,
    TopicAliasMaximum = 0x22,
    TopicAlias = 0x23,
    MaximumQos = 0x24,
    RetainAvailable = 0x25,
    UserProperty = 0x26,
    MaximumPacketSize = 0x27,
    WildcardSubscriptionAvailable = 0x28,
    SubscriptionIdentifierAvailable = 0x29,
    SharedSubscriptionAvailable = 0x2a,
}

/// The type of a property's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// 0 or 1.
    Flag,
    Two,
    /// Not 0.
    TwoPositive,
    Four,
    FourPositive,
    VarintPositive,
    Text,
    Bytes,
    /// A name and a value.
    Pair,
}

pub(super) struct Row {
    pub(super) id: PropertyId,
    pub(super) name: &'static str,
    pub(super) kind: ValueKind,
    pub(super) places: u16,
}

/// Places of properties: a packet, or the will of a CONNECT.
pub(super) const WILL: u16 = 1;
const CONNECT: u16 = PacketType::Connect.bit();
const CONNACK: u16 = PacketType::Connack.bit();
pub(super) const PUBLISH: u16 = PacketType::Publish.bit();
const SUBSCRIBE: u16 = PacketType::Subscribe.bit();
const DISCONNECT: u16 = PacketType::Disconnect.bit();
const AUTH: u16 = PacketType::Auth.bit();
const MATCHED: u16 = PUBLISH | SUBSCRIBE;
const EXPIRING: u16 = CONNECT | CONNACK | DISCONNECT;
const REASONED: u16 = CONNACK
    | PacketType::Puback.bit()
    | PacketType::Pubrec.bit()
    | PacketType::Pubrel.bit()
    | PacketType::Pubcomp.bit()
    | PacketType::Suback.bit()
    | PacketType::Unsuback.bit()
    | DISCONNECT
    | AUTH;

const fn row(id: PropertyId, name: &'static str, kind: ValueKind, places: u16) -> Row {
    Row { id, name, kind, places }
}

use PropertyId as P;
use ValueKind as K;

/// MQTT 5, table 2.4, in the order of the identifiers.
#[rustfmt::skip]
pub(super) const ROWS: [Row; 27] = [
    row(P::PayloadFormatIndicator, "payload_format_indicator", K::Flag, PUBLISH | WILL),
    row(P::MessageExpiryInterval, "message_expiry_interval", K::Four, PUBLISH | WILL),
    row(P::ContentType, "content_type", K::Text, PUBLISH | WILL),
    row(P::ResponseTopic, "response_topic", K::Text, PUBLISH | WILL),
    row(P::CorrelationData, "correlation_data", K::Bytes, PUBLISH | WILL),
    row(P::SubscriptionIdentifier, "subscription_identifier", K::VarintPositive, MATCHED),
    row(P::SessionExpiryInterval, "session_expiry_interval", K::Four, EXPIRING),
    row(P::AssignedClientIdentifier, "assigned_client_identifier", K::Text, CONNACK),
    row(P::ServerKeepAlive, "server_keep_alive", K::Two, CONNACK),
    row(P::AuthenticationMethod, "authentication_method", K::Text, CONNECT | CONNACK | AUTH),
    row(P::AuthenticationData, "authentication_data", K::Bytes, CONNECT | CONNACK | AUTH),
    row(P::RequestProblemInformation, "request_problem_information", K::Flag, CONNECT),
    row(P::WillDelayInterval, "will_delay_interval", K::Four, WILL),
    row(P::RequestResponseInformation, "request_response_information", K::Flag, CONNECT),
    row(P::ResponseInformation, "response_information", K::Text, CONNACK),
    row(P::ServerReference, "server_reference", K::Text, CONNACK | DISCONNECT),
    row(P::ReasonString, "reason_string", K::Text, REASONED),
    row(P::ReceiveMaximum, "receive_maximum", K::TwoPositive, CONNECT | CONNACK),
    row(P::TopicAliasMaximum, "topic_alias_maximum", K::Two, CONNECT | CONNACK),
    row(P::TopicAlias, "topic_alias", K::TwoPositive, PUBLISH),
    row(P::MaximumQos, "maximum_qos", K::Flag, CONNACK),
    row(P::RetainAvailable, "retain_available", K::Flag, CONNACK),
    row(P::UserProperty, "user_property", K::Pair, u16::MAX),
    row(P::MaximumPacketSize, "maximum_packet_size", K::FourPositive, CONNECT | CONNACK),
    row(P::WildcardSubscriptionAvailable, "wildcard_subscription_available", K::Flag, CONNACK),
    row(P::SubscriptionIdentifierAvailable, "subscription_identifier_available", K::Flag, CONNACK),
    row(P::SharedSubscriptionAvailable, "shared_subscription_available", K::Flag, CONNACK),
];

impl PropertyId {
    fn row(self) -> &'static Row {
        // The table contains all of them.
        ROWS.iter().find(|row| row.id == self).unwrap_or(&ROWS[0])
    }

    pub fn all() -> impl Iterator<Item = PropertyId> {
        ROWS.iter().map(|row| row.id)
    }

    /// The name in the standard, in lower case.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    pub fn named(name: &str) -> Option<PropertyId> {
        ROWS.iter().find(|row| row.name == name).map(|row| row.id)
    }

    pub fn kind(self) -> ValueKind {
        self.row().kind
    }

    /// Whether this packet may contain it.
    pub fn belongs_to(self, packet: PacketType) -> bool {
        self.row().places & packet.bit() != 0
    }
}
