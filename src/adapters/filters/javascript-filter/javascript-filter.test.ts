import { afterEach, describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Filter } from '#sdk/filter/filter.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { subject } from '#testing/login/subjects.ts'
import { type FakeHostOptions, fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { type FakeRequest, fakeRequest } from '#testing/modules/fake-request.ts'
import javaScriptFilter from './javascript-filter.ts'

const opened: Filter[] = []
const caller = subject('uid=ada,o=Tremolo', { sub: ['ada'], groups: ['a', 'b'] })
const behind: GatewayResponse = { status: 200, headers: { 'x-own': 'kept' }, body: 'behind' }

afterEach(async () => {
  await Promise.all(opened.splice(0).map((filter) => filter.close?.()))
})

function check(params: ParamValues): string[] {
  const issues = noIssues()
  javaScriptFilter.prepare(fakeParams(params), issues, fakeParseContext())
  return issueTexts(issues.list)
}

async function open(javaScript: string, params: ParamValues = {}, options: FakeHostOptions = {}): Promise<Filter> {
  const issues = noIssues()
  const prepared = javaScriptFilter.prepare(fakeParams({ javaScript, ...params }), issues, fakeParseContext())
  expect(issueTexts(issues.list).filter((text) => text.startsWith('error'))).toEqual([])
  const host = { ...fakeModuleHost(options), javaScript: (name: string) => (name === 'shared' ? shared : undefined) }
  const filter = await prepared.create(host)
  opened.push(filter)
  return filter
}

const shared = 'function getdata() { return 1; }'

const ask = async (filter: Filter, request: FakeRequest = {}): Promise<GatewayResponse> =>
  filter.handle(
    { request: fakeRequest(request), application: 'app', mount: '/m', pathInfo: '', subject: caller },
    async () => behind,
  )

const doing = (body: string): string =>
  `function initFilter(config) {}\nfunction doFilter(request, response, chain) { ${body} }`

describe('doFilter', () => {
  test('writes the response', async () => {
    const filter = await open(
      doing(`response.setStatus(201); response.setContentType("application/json"); response.addHeader("X-A", "1");
        response.addHeader("x-a", "2"); response.getWriter().print(JSON.stringify({ ok: true })); response.getWriter().println()`),
    )
    expect(await ask(filter)).toEqual({
      status: 201,
      headers: { 'content-type': 'application/json', 'x-a': ['1', '2'] },
      body: '{"ok":true}\n',
    })
  })

  test('redirects, reports errors and writes bytes', async () => {
    const filter = await open(
      doing(`var at = request.getRequestURI();
        if (at == "/redirect") response.sendRedirect("https://x.test/");
        else if (at == "/error") response.sendError(403, "no");
        else if (at == "/bytes") response.getOutputStream().write([-1, 0, 65]);`),
    )
    const at = (path: string) => ask(filter, { url: `http://h.test${path}` })
    expect(await at('/redirect')).toEqual({ status: 302, headers: { location: 'https://x.test/' } })
    expect(await at('/error')).toMatchObject({ status: 403, body: 'no' })
    expect((await at('/bytes')).body).toEqual(Buffer.from([255, 0, 65]))
    expect(await at('/nothing')).toEqual({ status: 200, headers: {} })
  })

  test('passes on only by nextFilter, and its headers are added', async () => {
    const filter = await open(
      doing(
        `if (request.getMethod() == "GET") { response.addHeader("x-new", "1"); chain.nextFilter(request, response, chain) }`,
      ),
    )
    expect(await ask(filter)).toEqual({ ...behind, headers: { 'x-own': 'kept', 'x-new': '1' } })
    expect(await ask(filter, { method: 'DELETE' })).toEqual({ status: 200, headers: {} })
  })

  test('reads the request and the signed-in user, and no credentials', async () => {
    const filter = await open(
      doing(`
        const ProxyConstants = Java.type("com.tremolosecurity.proxy.util.ProxyConstants");
        const ProxySys = Java.type("com.tremolosecurity.proxy.ProxySys");
        const JString = Java.type("java.lang.String");
        const user = request.getSession().getAttribute(ProxyConstants.AUTH_CTL).getAuthInfo();
        const names = []; const it = request.getHeaderNames(); while (it.hasNext()) names.push(it.next());
        response.getWriter().print(JSON.stringify([
          request.getMethod(), "" + request.getRequestURL(), request.getRequestURI(), request.getServerName(), request.isSecure(),
          request.getHeader("X-A").getValues().get(0), request.getHeader("Authorization"), names,
          Java.from(request.getParameter("a").getValues()), request.getParameter("none"),
          "" + new JString(request.getAttribute(ProxySys.MSG_BODY)),
          user.getUserDN(), Java.from(user.getAttribs().get("groups").getValues()), request.getAuthInfo() === user,
        ]))`),
    )
    const headers = {
      'x-a': 'b',
      authorization: 'Bearer s3cret',
      cookie: 's=s3cret',
      'content-type': 'application/x-www-form-urlencoded',
    }
    const { body } = await ask(filter, {
      method: 'POST',
      url: 'http://h.test/m?a=1',
      headers,
      body: 'a=%C3%BC+2&b=&a=%zz',
    })
    expect(JSON.parse(String(body))).toEqual([
      ...[
        'POST',
        'http://h.test/m',
        '/m',
        'h.test',
        false,
        'b',
        null,
        ['x-a', 'content-type'],
        ['1', 'ü 2', '%zz'],
        null,
      ],
      ...['a=%C3%BC+2&b=&a=%zz', 'uid=ada,o=Tremolo', ['a', 'b'], true],
    ])
  })

  test('shares functions by includeJs, and values of initFilter by globals', async () => {
    const filter = await open(
      `function initFilter(config) { globals.put("n", config.getAttribute("color").getValues().get(0)) }
       function doFilter(request, response, chain) {
         globals.put("count", (globals.get("count") || 0) + getdata());
         response.getWriter().print(globals.get("n") + globals.get("count"))
       }`,
      { color: 'red', includeJs: 'shared' },
    )
    expect((await ask(filter)).body).toBe('red1')
    expect((await ask(filter)).body).toBe('red2')
  })

  test('searches the directory, reads targets and changes nothing', async () => {
    const entries = [
      {
        dn: Dn.parse('uid=ada,ou=people,o=Tremolo'),
        attributes: Attributes.from({ uid: ['ada'], cn: ['Ada', 'A.'], userPassword: ['x'] }),
      },
    ]
    const calls: unknown[] = []
    const cluster = {
      objects: {},
      calls: {
        address: 'https://api.test',
        call: async (call: { path: string }) => {
          calls.push(call)
          return call.path.endsWith('/down') ? { status: 500, body: 'no' } : { status: 404, body: '{"kind":"Status"}' }
        },
      },
    }
    const filter = await open(
      doing(`
        const manager = Java.type("com.tremolosecurity.server.GlobalEntries").getGlobalEntries().getConfigManager();
        const FilterBuilder = Java.type("org.apache.directory.ldap.client.api.search.FilterBuilder");
        const ArrayList = Java.type("java.util.ArrayList");
        const found = manager.getMyVD().search("o=Tremolo", 2, FilterBuilder.equal("uid", "ada").toString(), new ArrayList());
        found.hasMore(); const entry = found.next();
        const k8s = manager.getProvisioningEngine().getTarget("k8s").getProvider();
        const con = k8s.createClient();
        const caught = (work) => { try { return work() } catch (e) { return e.getMessage() } };
        const answer = [
          entry.getDN(), entry.getAttribute("CN").getStringValueArray(), entry.getAttribute("userPassword"), found.hasMore(),
          k8s.getUrl(), k8s.callWS(k8s.getAuthToken(), con, "/api/v1/namespaces/x"),
          caught(() => k8s.callWS(k8s.getAuthToken(), con, "/down")),
          caught(() => k8s.callWSDelete(k8s.getAuthToken(), con, "/api/v1/namespaces/x")),
          caught(() => k8s.addGroup("g")),
          Java.from(manager.getCfg().getProvisioning().getTargets().getTarget()).map((t) => t.getName() + t.getClassName() + t.getLabel()),
        ];
        con.getHttp().close(); con.getBcm().close();
        response.getWriter().print(JSON.stringify(answer))`),
      {},
      { entries, targets: { k8s: cluster as never, db: {} as never } },
    )
    expect(JSON.parse(String((await ask(filter)).body))).toEqual([
      ...['uid=ada,ou=people,o=Tremolo', ['Ada', 'A.'], null, false, 'https://api.test', '{"kind":"Status"}'],
      "Unexpected result calling '/down' - 500 / no",
      'only a workflow task may change a target; start a workflow instead',
      'the target "k8s" has no groups of its own',
      ['k8scom.tremolosecurity.unison.openshiftv3.OpenShiftTargetnull', 'dbnull'],
    ])
    expect(calls).toEqual([
      { method: 'GET', path: '/api/v1/namespaces/x' },
      { method: 'GET', path: '/down' },
    ])
  })
})

describe('a script that fails answers 500 and reaches nothing behind it', () => {
  test.each([
    ['throw new Error("secret detail")', /secret detail/],
    ['for (;;) {}', /took longer/],
    ['const all = []; for (;;) all.push("x".repeat(1e6) + all.length)', /process ended|took longer/],
    ['const w = response.getWriter(); for (;;) w.print("x".repeat(1e6))', /longer than/],
    ['response.addHeader("x-a", "b\\r\\nset-cookie: s=1")', /not allowed/],
    ['response.addHeader("x-a\\r\\n", "b")', /not allowed/],
    ['response.addHeader("Content-Length", "1")', /cannot be set/],
    ['response.addHeader("__proto__", "1")', /cannot be set/],
    ['for (let i = 0; i < 2000; i++) response.addHeader("x" + i, "1")', /too many headers/],
    ['response.setStatus(99)', /status/],
    ['response.setStatus("x")', /status/],
    ['response.getWriter().print("x"); chain.nextFilter(request, response, chain)', /nextFilter/],
    ['response.setStatus(403); chain.nextFilter(request, response, chain)', /nextFilter/],
    ['chain.nextFilter(request, { status: 200 }, chain)', /response is needed/],
    ['request.getAuthInfo().getAttribs().clear(); chain.nextFilter(request, response, chain)', /signed-in user/],
    [
      'request.getAuthInfo().setUserDN("uid=root,o=Tremolo"); chain.nextFilter(request, response, chain)',
      /signed-in user/,
    ],
    [
      'Object.getPrototypeOf(response).setStatus = () => {}; throw new Error("frozen")',
      /frozen|read only|Cannot assign/,
    ],
    ['this.constructor.constructor("return process")().exit(0)', /Code generation|not a function|undefined/],
  ])(
    '%s',
    async (body, reason) => {
      const filter = await open(
        doing(`if (request.getRequestURI() == "/bad") { ${body} } else chain.nextFilter(request, response, chain)`),
        {
          timeoutSeconds: '2',
          memoryMegabytes: '32',
        },
      )
      const failure = await ask(filter, { url: 'http://h.test/bad' }).then(
        () => undefined,
        (error: unknown) => error,
      )
      if (!(failure instanceof GatewayError)) throw new Error('it did not fail')
      expect(failure).toMatchObject({ code: 'INTERNAL', status: 500, message: expect.stringMatching(reason) })
      expect(failure.publicText).toBe('An internal error occurred.')
      expect(await ask(filter)).toEqual(behind)
    },
    60_000,
  )

  test('a system that the script cannot reach is a 503', async () => {
    const filter = await open(doing('throw new (Java.type("java.io.IOException"))("gone")'))
    await expect(ask(filter)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  })

  test('changed built-ins do not outlast the call', async () => {
    const filter = await open(
      doing(`if (request.getRequestURI() == "/bad") {
          Array.prototype.push = () => { throw 1 }; Object.prototype.next = true; JSON.stringify = () => '{"next":true}';
          String.prototype.toLowerCase = () => "x"; response.setStatus(403);
        } else chain.nextFilter(request, response, chain)`),
    )
    expect(await ask(filter, { url: 'http://h.test/bad' })).toEqual({ status: 403, headers: {} })
    expect(await ask(filter)).toEqual(behind)
  })
})

test('check reports what is not served', () => {
  expect(check({})).toEqual(['error params.javaScript: parameter "javaScript" is required'])
  expect(check({ javaScript: 'export function doFilter() {}' })).toEqual([
    'error params.javaScript: "javaScript": line 1: ES modules cannot use Java objects',
  ])
  expect(check({ javaScript: doing('request.getSession().setAttribute("a", 1);\nrequest.getCookies("x")') })).toEqual([
    'error params.javaScript: "javaScript": line 2: jakarta.servlet.http.HttpSession.setAttribute() is not served; keep values in the map "globals", or in an attribute of the user',
    'error params.javaScript: "javaScript": line 3: com.tremolosecurity.proxy.filter.HttpFilterRequest.getCookies() is not served; cookies are withheld from scripts',
  ])
})

test('unusable code is rejected', async () => {
  await expect(open('function initFilter() {}')).rejects.toThrow(/no function doFilter/)
  await expect(open(`function initFilter() { throw new Error('not so') } function doFilter() {}`)).rejects.toThrow(
    /not so/,
  )
})
