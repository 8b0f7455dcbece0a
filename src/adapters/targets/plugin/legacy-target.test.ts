import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type Logger, silentLogger } from '#kernel/logger.ts'
import { targetConformance } from '#sdk/conformance/target-conformance.ts'
import { syncOptions, targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { hasGroups, hasLookups, type Target } from '#sdk/target/target.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { startForwardProxy } from '#testing/servers/forward-proxy.ts'
import { legacyTargetScript } from '#testing/targets/legacy-script.ts'
import plugin from './plugin.ts'

const sample = legacyTargetScript()
const names = { attributes: ['mail', 'cn', 'sn'], groups: ['a', 'b', 'c'] } as const
const opened: Target[] = []

afterEach(async () => {
  await Promise.all(opened.splice(0).map((target) => target.close?.()))
})

function check(params: ParamValues) {
  const issues = noIssues()
  const prepared = plugin.prepare(fakeParams(params), issues, fakeParseContext(tmpdir()))
  return { prepared, texts: issueTexts(issues.list) }
}

async function create(params: ParamValues, log: Logger = silentLogger): Promise<Target> {
  const { prepared, texts } = check(params)
  expect(texts.filter((text) => text.startsWith('error'))).toEqual([])
  return prepared.create({ ...fakeModuleHost(), name: 'crm', log })
}

async function open(params: ParamValues, log?: Logger): Promise<Target> {
  const target = await create(params, log)
  opened.push(target)
  return target
}

/** A target whose `findUser` returns a user whose id is the text of the body's result. */
const answering = (body: string, before = ''): string => `
  var User = Java.type("com.tremolosecurity.provisioning.core.User");
  ${before}
  function findUser(userID, attributes, request) {
    var answer = (function () { ${body} })();
    var user = new User(userID);
    user.getGroups().add(typeof answer === "string" ? answer : JSON.stringify(answer === undefined ? null : answer));
    return user;
  }
  function createUser(user, attributes, request) {}
  function syncUser(user, addOnly, attributes, request) {}
  function deleteUser(user, request) {}`

async function answerOf(body: string, before?: string, params: ParamValues = {}): Promise<unknown> {
  const target = await open({ javaScript: answering(body, before), ...params })
  return ask(target)
}

async function ask(target: Target): Promise<unknown> {
  const found = await target.findUser('ada', ['mail'], targetFixture(target, names).request)
  const text = found?.groups[0] ?? ''
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

describe('the example passes the suite', () => {
  let target: Target
  beforeAll(async () => {
    target = await create({ javaScript: sample, requireAllFunctions: 'true' })
  })
  afterAll(() => target.close?.())

  async function empty(): Promise<void> {
    if (!hasLookups(target) || !hasGroups(target)) throw new Error('capabilities missing')
    const { request } = targetFixture(target, names)
    const users = await target.searchUsers({ offset: 0, limit: 1000 })
    for (const user of users.items) await target.deleteUser(user, request)
    const groups = await target.searchGroups({ offset: 0, limit: 1000 })
    for (const { name } of groups.items) await target.deleteGroup(name, request)
  }

  targetConformance('legacy script', async () => ({ target, close: empty }), { test })

  test('the suite notices its faults', async () => {
    const broken = await open({ javaScript: sample.replace('!addOnly && ', '') })
    const cases: (() => Promise<void>)[] = []
    targetConformance('broken', async () => ({ target: broken, close: async () => {} }), {
      test: (name, run) => name.includes('addOnly') && cases.push(run),
    })
    expect(cases).toHaveLength(1)
    await expect(cases[0]?.()).rejects.toThrow()
  })
})

test('the script restarts with each call, and only state persists', async () => {
  const before = 'var calls = 0; function init(cfg) { state.put("n", cfg.get("start").getValues().get(0)) }'
  const script = answering('calls++; state.put("n", state.get("n") + "+"); return [calls, state.get("n")]', before)
  const target = await open({ javaScript: script, start: 'x' })
  expect(await ask(target)).toEqual([1, 'x+'])
  expect(await ask(target)).toEqual([1, 'x++'])
})

test('a script that loops fails its own call only', async () => {
  const script = answering('while (userID == "endless") {} return "fine"')
  const target = await open({ javaScript: script, timeoutSeconds: '1' })
  const { request } = targetFixture(target, names)
  const [endless, other] = await Promise.allSettled([target.findUser('endless', [], request), ask(target)])
  expect(endless).toMatchObject({ status: 'rejected', reason: { code: 'TARGET_TIMEOUT' } })
  expect(other).toEqual({ status: 'fulfilled', value: 'fine' })
})

test('init gets the configuration, the manager and the name', async () => {
  const before = `function init(cfg, cfgMgr, name) {
    state.put("seen", cfg.get("url").getName() + cfg.get("url").getValues().get(0) + name + (cfgMgr.getProvisioningEngine() != null))
  }`
  const script = answering('return state.get("seen") + state.get("name")', before)
  expect(await ask(await open({ javaScript: script, url: 'https://x.test' }))).toBe('urlhttps://x.testcrmtruecrm')
})

test('a request has the parameters and the workflow', async () => {
  const script = answering(
    'return [request.get("plain"), request.get("list").get(1), request.get("map").get("a"), request.containsKey("APPROVAL_ID"), request.get("WORKFLOW").getName()]',
  )
    .replace('(function () {', '((request) => {')
    .replace('})();', '})(request);')
  const target = await open({ javaScript: script })
  const { request } = targetFixture(target, names)
  const params = { plain: 'x', list: [1, 2], map: { a: 'b' } }
  const found = await target.findUser('ada', [], { ...request, params })
  expect(JSON.parse(found?.groups[0] ?? '')).toEqual(['x', 2, 'b', false, 'conformance'])
})

test('its output and log messages appear in the log', async () => {
  const lines: unknown[] = []
  const note = (level: string) => (_: string, fields?: Readonly<Record<string, unknown>>) =>
    void lines.push([level, fields?.['text']])
  const log: Logger = { ...silentLogger, info: note('info'), warn: note('warn'), error: note('error') }
  const body = `Java.type("org.apache.log4j.Logger").getLogger("x").warn("careful", new (Java.type("java.io.IOException"))("gone"));
    Java.type("java.lang.System").out.println(1); print("a", 2); console.error("bad")`
  const target = await open({ javaScript: answering(body) }, log)
  await target.findUser('ada', [], { ...targetFixture(target, names).request, log })
  expect(lines).toEqual([
    ['warn', 'careful java.io.IOException: gone'],
    ['info', '1'],
    ['info', 'a 2'],
    ['error', 'bad'],
  ])
})

describe('exceptions', () => {
  test.each([
    ['throw new Error("no")', 'TARGET_FAILED', /findUser: no/],
    ['throw Object.assign(new Error("taken"), { code: "conflict" })', 'CONFLICT', /taken/],
    ['throw "text"', 'TARGET_FAILED', /threw text/],
    ['throw null', 'TARGET_FAILED', /threw null/],
    ['throw { get message() { throw 1 } }', 'TARGET_FAILED', /cannot be described/],
    [
      'throw new (Java.type("com.tremolosecurity.provisioning.core.ProvisioningException"))("no such host")',
      'TARGET_FAILED',
      /ProvisioningException: no such host/,
    ],
    ['throw new (Java.type("java.io.IOException"))("gone")', 'TARGET_UNREACHABLE', /IOException: gone/],
    [
      'new java.util.ArrayList().get(3)',
      'TARGET_FAILED',
      /IndexOutOfBoundsException: Index 3 out of bounds for length 0/,
    ],
    ['return new (Java.type("com.example.Absent"))()', 'TARGET_FAILED', /com.example.Absent is not served/],
    ['return missing.thing', 'TARGET_FAILED', /missing is not defined/],
  ])('%s', async (body, code, message) => {
    const script = answering(body).replace('Java.type("com.example.Absent")', 'Java["type"](["com.example.Absent"][0])')
    const target = await open({ javaScript: script })
    await expect(ask(target)).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
  })

  test('an exception can be caught and inspected', async () => {
    const body = `try { java.util.UUID.fromString("x") } catch (e) {
      return [e.getMessage(), "" + e, e instanceof Java.type("java.lang.IllegalArgumentException"), e instanceof Java.type("java.io.IOException")]
    }`
    expect(await answerOf(body)).toEqual([
      'Invalid UUID string: x',
      'java.lang.IllegalArgumentException: Invalid UUID string: x',
      true,
      false,
    ])
  })

  test('an answer that is not a user is rejected, and so is a promise', async () => {
    for (const [answer, message] of [
      ['42', /must be an object/],
      ['new java.util.HashMap()', /userID/],
      ['new User(null)', /userID/],
      ['Promise.resolve(new User("x"))', /promise/],
    ] as const) {
      const script = answering('').replace('return user;', `return ${answer};`)
      await expect(ask(await open({ javaScript: script }))).rejects.toThrow(message)
    }
  })
})

describe('hostile scripts', () => {
  test('an endless loop ends at its time limit, and the next call works', async () => {
    const body = 'if (state.get("looped") == null && userID == "loop") { for (;;) {} } return "fine"'
    const target = await open({ javaScript: answering(body), timeoutSeconds: '1' })
    const { request } = targetFixture(target, names)
    await expect(target.findUser('loop', [], request)).rejects.toMatchObject({ code: 'TARGET_TIMEOUT' })
    expect(await ask(target)).toBe('fine')
  })

  test('a memory bomb ends its own process, and the next call works', async () => {
    const body =
      'if (userID == "bomb") { var a = []; for (;;) a.push(new Array(100000).fill("x" + a.length)) } return "fine"'
    const target = await open({ javaScript: answering(body), memoryMegabytes: '32' })
    const { request } = targetFixture(target, names)
    await expect(target.findUser('bomb', [], request)).rejects.toMatchObject({ code: 'TARGET_FAILED' })
    expect(await ask(target)).toBe('fine')
  }, 30_000)

  test('many calls fit into little memory', async () => {
    const target = await open({
      javaScript: answering('return new Array(1000).fill(userID).length'),
      memoryMegabytes: '32',
    })
    for (let i = 0; i < 1000; i++) expect(await ask(target)).toBe(1000)
  }, 60_000)

  test.each([
    ['process', 'return typeof process'],
    ['require', 'return typeof require'],
    ['fetch', 'return typeof fetch'],
    ['setTimeout', 'return typeof setTimeout'],
    ['the global object', 'return typeof globalThis.process + typeof this.process'],
    ['Buffer', 'return typeof Buffer'],
  ])('there is no %s', async (_, body) => {
    expect(String(await answerOf(body)).replaceAll('undefined', '')).toBe('')
  })

  /** Known escapes from `node:vm`, which work if outside objects are in reach. */
  const ladders = [
    'this.constructor.constructor',
    'Java.constructor.constructor',
    'Java.type.constructor',
    'state.constructor.constructor',
    'request.getClass ? 0 : request.constructor.constructor',
    'attributes.iterator().constructor.constructor',
    'User.constructor',
    'console.log.constructor',
    'java.util.constructor.constructor',
    'Object.getPrototypeOf(async function () {}).constructor',
    'Object.getPrototypeOf(function* () {}).constructor',
    'Java.from([1]).constructor.constructor',
    'request.get("WORKFLOW").constructor.constructor',
  ]

  test('no chain of constructors escapes', async () => {
    const body = `return [${ladders.map((ladder) => `(() => { try { return typeof (${ladder})("return process")() } catch (e) { return e.name } })()`).join(', ')}]`
    const script = answering(body.replaceAll('.constructor', '["con" + "structor"]'))
      .replace('(function () {', '((request, attributes) => {')
      .replace('})();', '})(request, attributes);')
    const target = await open({ javaScript: script })
    const answers = (await ask(target)) as string[]
    expect(answers).toHaveLength(ladders.length)
    expect(
      answers.filter((answer) => !/^(?:EvalError|TypeError|UnsupportedOperationException|Error)$/.test(answer)),
    ).toEqual([])
  })

  test('errors of the surrounding process do not leak from a full stack', async () => {
    const body = `function deep(n) { try { return deep(n + 1) } catch (e) { try { java.util.UUID.randomUUID(); print("x") } catch (f) { e = f }
      try { return e.constructor.constructor("return process")() === undefined } catch (g) { return g.name } } }
      return deep(0)`
    expect(await answerOf(body)).toMatch(/EvalError|RangeError/)
  })

  test('changes of prototypes end with the call', async () => {
    const before = `function tamper() {
      var tried = [() => { HashMap.prototype.get = () => "evil" }, () => { Object.getPrototypeOf(state).put = () => "evil" },
        () => { Object.prototype.userID = "evil" }, () => { Array.prototype.map = () => "evil" }, () => { Java.type = () => "evil" },
        () => { User.prototype.getUserID = () => "evil" }, () => { Object.getPrototypeOf(new User("x").getGroups()).add = () => "evil" },
        () => { JSON.stringify = () => "evil" }, () => { state.__proto__ = {} }, () => { Symbol.iterator = 1 }]
      tried.forEach(function (one) { try { one() } catch (e) {} })
    }
    var HashMap = Java.type("java.util.HashMap"), User = Java.type("com.tremolosecurity.provisioning.core.User")`
    const body =
      'if (userID == "tamper") { tamper(); return "done" } var m = new HashMap(); m.put("a", [1].map(x => x)[0]); return [m.get("a"), typeof ({}).userID, new User("u").getUserID()]'
    const target = await open({ javaScript: answering(body, before.replaceAll('.prototype', '["proto" + "type"]')) })
    const { request } = targetFixture(target, names)
    await Promise.resolve(target.findUser('tamper', [], request)).catch(() => {})
    expect(await ask(target)).toEqual([1, 'undefined', 'u'])
  })

  test('it reads no files and starts no programs', () => {
    const script = answering(
      'return new java.io.File("/etc/passwd").exists() + java.lang.Runtime.getRuntime().exec("id")',
    )
    expect(check({ javaScript: script }).texts).toEqual([
      expect.stringMatching(
        /^error params.javaScript: "javaScript": line 5: the Java type java.io.File is not served; scripts have no files/,
      ),
      expect.stringMatching(
        /^error params.javaScript: "javaScript": line 5: the Java type java.lang.Runtime is not served$/,
      ),
    ])
  })
})

describe('HTTP', () => {
  let server: Server
  let base: string
  const seen: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[] = []

  beforeAll(async () => {
    server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const { method = '', url = '', headers } = request
      seen.push({ method, url, headers, body: Buffer.concat(chunks).toString() })
      if (url === '/slow') return
      if (url === '/cut') return void response.socket?.destroy()
      if (url === '/big') return void response.end(Buffer.alloc(17 * 1024 * 1024))
      if (url === '/moved') return void response.writeHead(302, { Location: '/there' }).end()
      response.setHeader('Set-Cookie', ['a=1', 'b=2'])
      response.writeHead(method === 'POST' ? 201 : 200, { 'Content-Type': 'application/json', 'X-One': 'eins' })
      response.end(JSON.stringify({ url, name: 'Zoë 🎉' }))
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  afterEach(() => void seen.splice(0))

  const imports = () => `
    var HttpClient = Java.type("java.net.http.HttpClient"), HttpRequest = Java.type("java.net.http.HttpRequest"),
      HttpResponse = Java.type("java.net.http.HttpResponse"), URI = Java.type("java.net.URI"), Duration = Java.type("java.time.Duration"),
      JSUtils = Java.type("com.tremolosecurity.util.JSUtils"), base = ${JSON.stringify(base)};
    function send(builder, client) {
      return (client || HttpClient.newHttpClient()).send(builder.build(), HttpResponse.BodyHandlers.ofString())
    }
    function to(path) { return HttpRequest.newBuilder().uri(URI.create(base + path)) }`

  test('send waits for the answer', async () => {
    const body = `var r = send(to("/users/1?x=%20y").header("Authorization", "Bearer t").header("Accept", "application/json").GET())
      return [r.statusCode(), JSON.parse(r.body()).name, r.headers().firstValue("x-one").orElse("-"), r.headers().firstValue("x-two").isPresent(),
        r.headers().allValues("Set-Cookie").size(), r.uri().getPath(), r.headers().map().get("content-type").get(0)]`
    expect(await answerOf(body, imports())).toEqual([200, 'Zoë 🎉', 'eins', false, 2, '/users/1', 'application/json'])
    expect(seen[0]).toMatchObject({ method: 'GET', url: '/users/1?x=%20y', headers: { authorization: 'Bearer t' } })
    expect(seen[0]?.headers['accept-encoding']).toBeUndefined()
  })

  test('bodies and methods', async () => {
    const body = `var P = HttpRequest.BodyPublishers; return [
      send(to("/a").header("Content-Type", "application/json").POST(P.ofString(JSON.stringify({ n: "ü" })))).statusCode(),
      send(to("/b").PUT(P.ofByteArray(JSUtils.string2bytes("ö")))).statusCode(), send(to("/c").DELETE()).statusCode(),
      send(to("/d").method("PATCH", P.ofString("p"))).statusCode(), send(to("/e").POST(JSUtils.formEncode("a=%s&b=%s", "x y&z", "=ß"))).statusCode(),
      send(to("/f").POST(P.noBody())).statusCode()]`
    expect(await answerOf(body, imports())).toEqual([201, 200, 200, 200, 201, 201])
    expect(seen.map(({ method, body: text }) => `${method} ${text}`)).toEqual([
      'POST {"n":"ü"}',
      'PUT ö',
      'DELETE ',
      'PATCH p',
      'POST a=x+y%26z&b=%3D%C3%9F',
      'POST ',
    ])
  })

  test('redirects are followed on request', async () => {
    const body = `var following = HttpClient.newBuilder().followRedirects(HttpClient.Redirect.NORMAL).build()
      return [send(to("/moved")).statusCode(), JSON.parse(send(to("/moved"), following).body()).url]`
    expect(await answerOf(body, imports())).toEqual([302, '/there'])
  })

  test('requests of scripts use the proxy of the gateway', async () => {
    const proxy = await startForwardProxy({ target: Number(new URL(base).port), login: 'a:hunter2' })
    onTestFinished(() => proxy.close())
    vi.stubEnv('HTTP_PROXY', `http://a:hunter2@127.0.0.1:${proxy.port}`)
    vi.stubEnv('https_proxy', `http://127.0.0.1:${proxy.port}`)
    vi.stubEnv('no_proxy', 'example.net')
    onTestFinished(() => void vi.unstubAllEnvs())
    const to = (url: string) => `send(HttpRequest.newBuilder(URI.create("${url}")))`
    const body = `return [${to('http://api.example.com/a?b')}.statusCode(), send(to("/c")).statusCode()]`
    expect(await answerOf(body, imports())).toEqual([200, 200])
    expect(proxy.seen).toEqual(['GET http://api.example.com/a?b'])
    expect(seen.map(({ url }) => url)).toEqual(['/a?b', '/c'])
    const target = await open({ javaScript: answering(to('https://api.example.com/'), imports()) })
    await expect(ask(target)).rejects.toMatchObject({
      message: expect.stringMatching(/ConnectException: the proxy http:.+ wants another user name or password \(407\)/),
    })
  })

  test.each([
    ['nothing listens', 'send(HttpRequest.newBuilder(URI.create("http://127.0.0.1:1/")))', /ConnectException/],
    ['there is no answer', 'send(to("/slow").timeout(Duration.ofMillis(300)))', /HttpTimeoutException/],
    ['the connection is cut', 'send(to("/cut"))', /ConnectException/],
    ['the answer is too long', 'send(to("/big"))', /IOException: the answer is longer/],
  ])('unreachable: %s', async (_, body, message) => {
    const target = await open({ javaScript: answering(body, imports()) })
    await expect(ask(target)).rejects.toMatchObject({
      code: 'TARGET_UNREACHABLE',
      message: expect.stringMatching(message),
    })
  })

  test('a silent server is reported before the call times out', async () => {
    const target = await open({ javaScript: answering('send(to("/slow"))', imports()), timeoutSeconds: '3' })
    await expect(ask(target)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  })

  test('values break neither headers nor addresses', async () => {
    const attempts = [
      'to("/a").header("X", "a\\r\\nHost: evil")',
      'to("/a").header("X\\r\\nY", "a")',
      'to("/a").header("Host", "evil")',
      'to("/a b")',
      'to("/a\\r\\nX: y")',
      'to("/%zz")',
      'HttpRequest.newBuilder(URI.create("file:///etc/passwd"))',
      'HttpRequest.newBuilder(URI.create("http:///x"))',
      'to("/a").method("GET /x", HttpRequest.BodyPublishers.noBody())',
      'to("/a").POST("text")',
    ]
    const body = `return [${attempts.map((attempt) => `(() => { try { ${attempt}; return "taken" } catch (e) { return ("" + e).split(":")[0] } })()`).join(', ')}]`
    expect(await answerOf(body, imports())).toEqual(Array(attempts.length).fill('java.lang.IllegalArgumentException'))
    expect(seen).toEqual([])
  })
})

describe('check', () => {
  test.each([
    [
      'var User = Java.type("x.y.Z")',
      'warning params.javaScript: "javaScript": line 1: the Java type x.y.Z is not served; using it fails',
    ],
    [
      '\n\nvar Z = Java.type("x.y.Z"); new Z()',
      'error params.javaScript: "javaScript": line 3: the Java type x.y.Z is not served',
    ],
    [
      'var H = Java.type("java.util.HashMap");\nnew H().stream()',
      'error params.javaScript: "javaScript": line 2: java.util.HashMap.stream() is not served; use the methods of JavaScript arrays, such as map and filter',
    ],
    [
      'import x from "y"; Java.type("z")',
      'error params.javaScript: "javaScript": line 1: ES modules cannot use Java objects',
    ],
  ])('%j', (script, message) => {
    const functions = 'function findUser() {} function createUser() {} function syncUser() {} function deleteUser() {}'
    expect(check({ javaScript: `${script}\n${functions}` }).texts).toEqual([message])
  })

  test('the example has no problems', () => {
    expect(check({ javaScript: sample, requireAllFunctions: 'true' }).texts).toEqual([])
  })
})

test('a script without Java stays unchanged', async () => {
  const script = `function findUser(userID, attributes, request) { return { userID: typeof process, attributes: {}, groups: [] } }
    function createUser() {} function syncUser() {} function deleteUser() {}`
  const target = await open({ javaScript: script })
  const { request } = targetFixture(target, names)
  expect((await target.findUser('x', [], request))?.userID).toBe('object')
  await target.syncUser(userOf('x'), syncOptions([]), request)
})

test('a script that stores its users as JSON, and assigns undeclared variables', async () => {
  const target = await open({
    start: 'mm',
    secret: 'x',
    javaScript: `
      System = Java.type("java.lang.System"); String = Java.type("java.lang.String"); BasicDB = Java.type("com.tremolosecurity.provisioning.core.providers.BasicDB");
      User = Java.type("com.tremolosecurity.provisioning.core.User"); Attribute = Java.type("com.tremolosecurity.saml.Attribute");
      ProvisioningUtil = Java.type("com.tremolosecurity.provisioning.core.ProvisioningUtil")
      function init(cfg, cfgMgr, name) {
        user = { mail: "m@x.test", groups: ["one", "two"] };
        db = {}; db[cfg.get("start").getValues().get(0)] = user;
        state.put("db", JSON.stringify(db));
      }
      function findUser(userID, attributes, request) {
        const user = JSON.parse(state.get("db"))[userID];
        if (! user) { return null; }
        const found = new User(userID);
        attributes.forEach(attrName => {
          val = user[attrName];
          if (val) { attr = new Attribute(attrName, val); found.getAttribs().put(attrName, attr); }
        });
        if (user["groups"]) { found.getGroups().addAll(user["groups"]); }
        return found;
      }
      function createUser(user, attributes, request) {
        approvalID = 0;
        if (request.containsKey("APPROVAL_ID")) { approvalID = request.get("APPROVAL_ID"); }
        workflow = request.get("WORKFLOW"); cfgMgr = state.get("cfgMgr"); name = state.get("name");
        const db = JSON.parse(state.get("db")); const made = { groups: [] };
        attributes.forEach(attrName => { const attr = user.getAttribs().get(attrName); if (attr) { made[attrName] = attr.getValues().get(0); } });
        user.getGroups().forEach(groupName => { made["groups"].push(groupName) });
        db[user.getUserID()] = made; state.put("db", JSON.stringify(db));
        cfgMgr.getProvisioningEngine().logAction(name, true, ProvisioningUtil.ActionType.Add, approvalID, workflow, "username", user.getUserID());
        Object.entries(made).forEach(([key, val]) => { if (key != "groups") cfgMgr.getProvisioningEngine().logAction(name, false, ProvisioningUtil.ActionType.Add, approvalID, workflow, key, val); });
      }
      function syncUser(user, addOnly, attributes, request) { fromDb = findUser(user.getUserID(), attributes, request); if (fromDb == null) { createUser(user, attributes, request); return; } }
      function deleteUser(user, request) {}`,
  })
  const { request, changes } = targetFixture(target, names)
  const found = await target.findUser('mm', ['mail', 'cn'], request)
  expect([found?.attributes.toObject(), found?.groups]).toEqual([{ mail: ['m@x.test'] }, ['one', 'two']])
  await target.syncUser(userOf('new', { mail: ['n@x.test'] }, ['one']), syncOptions(['mail']), request)
  expect((await target.findUser('new', ['mail'], request))?.attributes.toObject()).toEqual({ mail: ['n@x.test'] })
  expect(changes).toEqual([
    { subject: 'entry', action: 'add', attribute: 'username', value: 'new' },
    { subject: 'attribute', action: 'add', attribute: 'mail', value: 'n@x.test' },
  ])
})
