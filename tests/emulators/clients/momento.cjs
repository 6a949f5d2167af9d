// Momento's own client, unmodified, as a process: momento.cjs ADDRESS KEY
//
// Each line of the input is a request in JSON, with an id. Lines with this id answer it: one, or one for each event of a subscription. Bytes are
// in base64.
const { createInterface } = require('node:readline');
const {
  CredentialProvider,
  NoopMomentoLoggerFactory,
  StaticTopicGrpcConfiguration,
  StaticTopicTransportStrategy,
  TopicClient,
  TopicConfigurations,
  TopicPublish,
  TopicSubscribe,
} = require('@gomomento/sdk');
const { pubsub } = require('@gomomento/generated-types');

const { UnimplementedPubsubService, _TopicValue } = pubsub.cache_client.pubsub;
const [address, key] = process.argv.slice(2);
const base64 = (bytes) => Buffer.from(bytes).toString('base64');
const bytes = (text) => new Uint8Array(Buffer.from(text, 'base64'));

function connected() {
  const token = base64(JSON.stringify({ api_key: key, endpoint: 'nowhere.test' }));
  const endpoints = { cacheEndpoint: address, controlEndpoint: address, tokenEndpoint: address };
  const credentialProvider = CredentialProvider.fromDisposableToken({
    authToken: token,
    endpointOverrides: { ...endpoints, secureConnection: false },
  });
  // The client ends its first stream at the deadline of requests. A busy machine may take seconds for a test.
  const patience = new StaticTopicTransportStrategy({
    grpcConfiguration: new StaticTopicGrpcConfiguration({
      numStreamClients: 1,
      numUnaryClients: 1,
      deadlineMillis: 600_000,
    }),
  });
  // Its logs would be lines of the output.
  const configuration = TopicConfigurations.Default.latest(new NoopMomentoLoggerFactory()).withTransportStrategy(patience);
  return new TopicClient({ configuration, credentialProvider });
}

// The generated method shows both kinds of a value, also the one that is not there.
_TopicValue.prototype.toObject = function () {
  return { text: { text: this.text }, binary: { binary: base64(this.binary) }, none: {} }[this.kind];
};

const revived = (name, value) => (name === 'binary' ? bytes(value) : value);
const failed = (response) => ({ error: response.errorCode() });

let client;
const deeds = {
  async publish({ cache, topic, value }, tell) {
    client ??= connected();
    const response = await client.publish(cache, topic, value.text ?? value.binary);
    tell(response instanceof TopicPublish.Error ? failed(response) : { published: topic });
  },

  async subscribe({ cache, topic }, tell) {
    client ??= connected();
    const response = await client.subscribe(cache, topic, {
      onItem(item) {
        const value = typeof item.value() === 'string' ? { text: item.value() } : { binary: base64(item.value()) };
        tell({ item: { number: item.sequenceNumber(), value } });
      },
      onHeartbeat: () => tell({ heartbeat: {} }),
      onDiscontinuity: (gap) => tell({ discontinuity: [gap.lastSequenceNumber(), gap.newSequenceNumber(), gap.newSequencePage()] }),
      onError: (response) => tell(failed(response)),
    });
    if (response instanceof TopicSubscribe.Error) tell(failed(response));
  },

  /** The content of bytes, as the client reads them: `part` is the request or the response of a method. */
  read({ method, part, encoded }, tell) {
    const read = UnimplementedPubsubService.definition[method][`${part}Deserialize`];
    tell({ content: read(bytes(encoded)).toObject() });
  },

  /** The bytes of a content, as the client writes them. */
  write({ method, part, content }, tell) {
    const { [`${part}Deserialize`]: read, [`${part}Serialize`]: write } = UnimplementedPubsubService.definition[method];
    const { constructor: type } = read(new Uint8Array());
    tell({ encoded: base64(write(type.fromObject(content))) });
  },
};

const input = createInterface({ input: process.stdin });
input.on('line', async (line) => {
  const { id, deed, ...rest } = JSON.parse(line, revived);
  await deeds[deed](rest, (told) => process.stdout.write(`${JSON.stringify({ id, ...told })}\n`));
});
input.on('close', () => process.exit());
