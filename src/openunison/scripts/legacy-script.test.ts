import { describe, expect, test } from 'vitest'
import { checkModule, checkScript } from './legacy-script.ts'
import { type LegacySignatures, parameter, value } from './legacy-signatures.ts'

const signatures: LegacySignatures = {
  init: [parameter('attributes', 0), parameter('manager'), value(1)],
  findUser: [value(0), parameter('set', 1), parameter('request', 2)],
  createUser: [parameter('user', 0), parameter('set', 1), parameter('request', 2)],
}

const findings = (source: string): string[] =>
  checkScript(source, signatures).findings.map(({ level, message }) => `${level} ${message}`)

describe('a script is legacy', () => {
  test.each([
    'Java.type("java.util.HashMap")',
    'var x = Java["type"]("java.util.HashMap")',
    'new java.util.HashMap()',
    'new Packages.java.util.HashMap()',
    'function f() { return java.util.UUID.randomUUID() }',
    'function createUser(user) { return user.getUserID() }',
    'function createUser(user, attributes, request) { request.put("a", 1) }',
    'function createUser(user, attributes) { attributes.contains("a") }',
    'function init(cfg) { cfg.get("url") }',
  ])('%s', (source) => {
    expect(checkScript(source, signatures).legacy).toBe(true)
  })
})

test('the global "task" of a workflow task is checked, unless the script has a variable of that name', () => {
  const ofTask: LegacySignatures = { doTask: [parameter('user', 0), parameter('taskRequest', 1)] }
  const provider = 'task.getConfigManager().getProvisioningEngine().getTarget("people").getProvider()'
  const found = (source: string, given: LegacySignatures) =>
    checkScript(source, given).findings.map(({ message }) => message)
  const script = `function doTask(user, request) { return ${provider}.syncUser() }`
  expect(found(script, ofTask)).toEqual([expect.stringContaining('UserStoreProvider.syncUser() is not served')])
  expect(found(`function doTask(user, request) { return ${provider}.findUser("ada") }`, ofTask)).toEqual([])
  expect(found(`var task = user; ${script}; java.util.UUID.randomUUID()`, ofTask)).toEqual([])
  expect(found(`${script}; java.util.UUID.randomUUID()`, signatures)).toEqual([])
})

describe('a script is not legacy', () => {
  test.each([
    '// Java.type("x")\nvar s = "Java.type(1)", t = `Java.type(2)`, r = /Java.type(3)/',
    'var Java = { type: (x) => x }; Java.type("x")',
    'function f(Java) { return Java.type("x") }',
    'function createUser(user, attributes) { attributes.forEach((a) => user.attributes[a]) }',
    'function createUser(user) { user = wrap(user); return user.getUserID() }',
    'function other(user) { return user.getUserID() }',
    'const com = {}; com.Example()',
    'function createUser(user, attributes, request) { request.audit({}); request.log.warn("x") }',
  ])('%s', (source) => {
    expect(checkScript(source, signatures)).toMatchObject({ legacy: false, findings: [] })
  })
})

describe('unsupported use is reported with its line', () => {
  test.each([
    [
      '\nvar C = Java.type("java.sql.DriverManager")',
      ['warning line 2: the Java type java.sql.DriverManager is not served; using it fails'],
    ],
    [
      'var C = Java.type("a.B");\nnew C();\nC.d()',
      ['error line 2: the Java type a.B is not served', 'error line 3: the Java type a.B is not served'],
    ],
    ['Java.type("a.B").c()', ['error line 1: the Java type a.B is not served']],
    [
      'new java.io.File("x")',
      [
        'error line 1: the Java type java.io.File is not served; scripts have no files, so keep texts in the script or in a ConfigMap',
      ],
    ],
    ['Packages.a.b.C.d()', ['error line 1: the Java type a.b.C is not served']],
    ['Java.extend(Java.type("java.util.HashMap"))', ['error line 1: Java.extend is not served']],
    ['Java.type(name)', ['warning line 1: the name of the Java type is not known beforehand']],
    ['java.lang.System.exit(1)', ['error line 1: java.lang.System.exit is not served; return, or throw an exception']],
    [
      'var S = Java.type("java.lang.System")\nS.out.flush()',
      ['error line 2: java.io.PrintStream.flush() is not served'],
    ],
    ['new (Java.type("java.lang.System"))()', ['error line 1: java.lang.System cannot be made with new']],
    [
      'var l = new java.util.ArrayList(); l.add(1); l.map(x => x);\nl.stream()',
      [
        'error line 2: java.util.ArrayList.stream() is not served; use the methods of JavaScript arrays, such as map and filter',
      ],
    ],
    [
      'var e = Java.type("com.tremolosecurity.server.GlobalEntries").getGlobalEntries()\n  .getConfigManager().getProvisioningEngine()\n  .getTarget("x").getProvider().getDS().getConnection().createStatement()\n  .executeUpdate("x")',
      [
        'error line 1: java.sql.Statement.executeUpdate() is not served; scripts only read databases, by createStatement().executeQuery(); tasks change targets',
      ],
    ],
    [
      'function init() {\n  var list = new java.util.ArrayList();\n  first = list.iterator();\n  first.peek()\n}',
      ['error line 4: java.util.Iterator.peek() is not served'],
    ],
    [
      'function createUser(user) {\n  user.getUserID()\n  user.getNothing()\n}',
      ['error line 3: com.tremolosecurity.provisioning.core.User.getNothing() is not served'],
    ],
    [
      'var C = Java.type("java.net.http.HttpClient")\nC.newBuilder().connectTimeout(1).proxy(2)\nC.newHttpClient().sendAsync(1)',
      [
        'error line 2: java.net.http.HttpClient$Builder.proxy() is not served',
        'error line 3: java.net.http.HttpClient.sendAsync() is not served',
      ],
    ],
    [
      'var U = java.util.UUID;\neval("1"); new Function("x"); import("x")',
      [
        'error line 2: a legacy script cannot make code of texts (eval, Function)',
        'error line 2: a legacy script cannot make code of texts (eval, Function)',
        'error line 2: a legacy script cannot import',
      ],
    ],
  ])('%j', (source, expected) => {
    expect(findings(`${source}\n;java.util.UUID.randomUUID()`)).toEqual(expected)
  })

  test.each([
    ['Java.type("org.apache.http.nio.client.HttpAsyncClient").x', 'use java.net.http.HttpClient'],
    ['Java.type("java.util.HashMapp").x', 'did you mean java.util.HashMap?'],
    ['new (Java.type("java.util.HashMap"))().putt(1)', 'did you mean put?'],
    ['new (Java.type("java.util.HashMap"))().constructors(1)', undefined],
    ['Java.type("a.b.Whatever").x', undefined],
  ])('with the nearest alternative: %s', (source, instead) => {
    const [message = ''] = findings(source)
    expect(message).toMatch(instead === undefined ? /is not served$/ : /is not served; /)
    if (instead !== undefined) expect(message.endsWith(`; ${instead}`)).toBe(true)
  })

  test('nested types are named by a dot or a dollar', () => {
    for (const use of [
      'HttpRequest.BodyPublishers").ofString',
      'HttpResponse$BodyHandlers").ofString',
      'HttpClient.Redirect").NEVER',
    ]) {
      expect(findings(`Java.type("java.net.http.${use}`)).toEqual([])
    }
    const action = 'Java.type("com.tremolosecurity.provisioning.core.ProvisioningUtil.ActionType")'
    expect(findings(`${action}.Delete; ${action}.Ad`)).toEqual([
      expect.stringMatching(/ProvisioningUtil\$ActionType\.Ad is not served; did you mean Add\?$/),
    ])
  })

  test('the targets that a script names are known', () => {
    const source = `
      GlobalEntries = Java.type("com.tremolosecurity.server.GlobalEntries");
      GlobalEntries.getGlobalEntries().getConfigManager().getProvisioningEngine().getTarget("k8s");
      GlobalEntries.getGlobalEntries().getConfigManager().getProvisioningEngine().getTarget(name);
      Java.type("com.tremolosecurity.k8s.util.K8sUtils").loadSecret("satellite", "ns", "x")`
    expect(checkScript(source, signatures)).toMatchObject({ targets: ['k8s', 'satellite'], findings: [] })
  })

  test('a job starts workflows, also by a name in another place of the script, and changes no target itself', () => {
    const job: LegacySignatures = { execute: [parameter('manager'), parameter('jobContext', 1)] }
    const source = `function end(name) { engine().getWorkFlow(name) }
      function execute(manager, context) {
        engine = () => manager.getProvisioningEngine();
        manager.getProvisioningEngine().getWorkFlow(name); end("end-access");
        context.getJobDetail().getJobDataMap().getString("days");
        context.getJobDetail().getKey();
        manager.getProvisioningEngine().getTarget("k8s").getProvider().callWSDelete(null, null, "/x") }`
    const checked = checkScript(source, job)
    expect(checked).toMatchObject({ workflows: [undefined], texts: expect.arrayContaining(['end-access']) })
    expect(checked.findings.map(({ message }) => message)).toEqual([
      'line 6: org.quartz.JobDetail.getKey() is not served',
      'line 7: com.tremolosecurity.provisioning.core.UserStoreProvider.callWSDelete() is served in workflow tasks only; start a workflow that does it',
    ])
  })

  test('only workflow tasks and jobs start workflows', () => {
    const source =
      'Java.type("com.tremolosecurity.server.GlobalEntries").getGlobalEntries().getConfigManager().getProvisioningEngine().getWorkFlow("x")'
    expect(findings(source)).toEqual([
      'error line 1: com.tremolosecurity.provisioning.core.ProvisioningEngine.getWorkFlow() is served in workflow tasks and jobs only',
    ])
    const task: LegacySignatures = { doTask: [parameter('user', 0), parameter('taskRequest', 1)] }
    expect(checkScript(source, task)).toMatchObject({ findings: [], workflows: ['x'] })
    expect(checkScript(source, {})).toMatchObject({ findings: [] })
  })

  test('supported and unknown use is not reported', () => {
    expect(
      findings(`
        HashMap = Java.type("java.util.HashMap"); HttpRequest = Java.type("java.net.http.HttpRequest");
        var x = new HashMap(); x = other(); x.anything();
        new HashMap().entrySet().iterator().next().getKey();
        HttpRequest.newBuilder().uri(java.net.URI.create("x")).POST(HttpRequest.BodyPublishers.ofString("y")).build();
        function helper(user) { user.anything() }
        function createUser(user) { for (var g of user.getGroups()) g.anything(); user.getGroups().join(",") }
        var s = { eval: (t) => t }; s.eval("x"); new HashMap().toString().anything()
        ProvisioningUtil = Java.type("com.tremolosecurity.provisioning.core.ProvisioningUtil"); ProvisioningUtil.ActionType.Add.name()`),
    ).toEqual([])
  })
})

test('modules, and scripts without Java support, are rejected', () => {
  expect(() => checkScript('\nexport const f = () => Java.type("x")', signatures)).toThrow(
    /^line 2: ES modules cannot use/,
  )
  expect(() => checkScript('\nJava.type("x")', undefined)).toThrow(/^line 2: scripts of this kind cannot use/)
  expect(() => checkModule('\n\nJava.type("x")', 'a.js')).toThrow(/^line 3: ES modules/)
  expect(checkModule('const a: string = "Java.type(1)"', 'a.js').form).toBe('module')
})

test('a long text is accepted', () => {
  const source = `java.util.UUID.randomUUID(); var table = [${'1,'.repeat(150_000)}]; ${'table[0] = table[1];'.repeat(10_000)}`
  expect(checkScript(source, signatures)).toMatchObject({ legacy: true, findings: [] })
}, 30_000)

test('deeply nested text is rejected, not parsed', () => {
  expect(() => checkScript(`${'('.repeat(200_000)}1${')'.repeat(200_000)}`, signatures)).toThrow()
  expect(() => checkScript(`java.util.UUID${'.a'.repeat(100_000)}`, signatures)).toThrow(/too deep|call stack/)
})
