import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCommand } from '#testing/gateway/command.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'

const password = 'correct horse battery'

/** Objects in the form of OpenUnison's documentation of JavaScript. */
const objects = `
apiVersion: openunison.tremolo.io/v1
kind: JavaScript
metadata:
  name: shared-functions
spec:
  javascript: |-
    ProxyConstants = Java.type("com.tremolosecurity.proxy.util.ProxyConstants");
    function accept(request, response, as) {
      as.setExecuted(true);
      as.setSuccess(true);
      request.getAttribute(ProxyConstants.AUTOIDM_CFG).getConfig().getAuthManager().nextAuth(request, response, request.getSession(), false);
    }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata:
  name: js
spec:
  className: com.tremolosecurity.proxy.auth.JavaScriptAuth
  init: {}
  secretParams: []
  uri: /auth/js
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata:
  name: login-with-groups
spec:
  level: 10
  root: o=Tremolo
  authMechs:
    - name: login-form
      required: required
      params:
        uidAttr: uid
    - name: js
      required: required
      params:
        timeoutSeconds: "2"
        includeJs: [shared-functions]
        js: |-
          Attribute = Java.type("com.tremolosecurity.saml.Attribute");
          GlobalEntries = Java.type("com.tremolosecurity.server.GlobalEntries");
          ArrayList = Java.type("java.util.ArrayList");
          function doAuth(request, response, as) {
            var user = request.getSession().getAttribute(ProxyConstants.AUTH_CTL).getAuthInfo();
            var login = user.getAttribs().get("uid").getValues().get(0);
            if (login == "eve") { as.setExecuted(true); as.setSuccess(false); return; }
            if (login == "looper") for (;;) {}
            var found = GlobalEntries.getGlobalEntries().getConfigManager().getMyVD().search("o=Tremolo", 2, "(uid=" + login + ")", new ArrayList());
            found.hasMore();
            var groups = new Attribute("groups");
            groups.getValues().add("staff-of-" + found.next().getAttribute("uid").getStringValue());
            user.getAttribs().put("groups", groups);
            accept(request, response, as);
          }
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata:
  name: api
spec:
  azTimeoutMillis: 3000
  isApp: true
  cookieConfig:
    sessionCookieName: api
    domain: "*"
    timeout: 900
    logoutURI: /api/logout
    secure: false
    httpOnly: true
    cookiesEnabled: true
  urls:
    - hosts: ["127.0.0.1", "localhost"]
      uri: /api
      authChain: login-with-groups
      azRules:
        - scope: filter
          constraint: (groups=staff-of-*)
      filterChain:
        - className: com.tremolosecurity.proxy.filters.JavaScriptFilter
          params:
            javaScript: |-
              function initFilter(config) {}
              function doFilter(request, response, chain) {
                response.addHeader("x-script", "seen");
                var wanted = request.getParameter("do");
                var action = wanted == null ? "" : wanted.getValues().get(0);
                if (action == "loop") for (;;) {}
                if (action == "throw") throw new Error("a detail of the script");
                if (action == "inject") response.addHeader("x-a", "b\\r\\nset-cookie: stolen=1");
                if (action == "huge") for (;;) response.getWriter().print("x".repeat(1000000));
                if (action == "next") chain.nextFilter(request, response, chain);
                else response.getWriter().print(JSON.stringify(Java.from(request.getAuthInfo().getAttribs().get("groups").getValues())));
              }
            timeoutSeconds: "2"
        - className: filters.Plugin
          params:
            javaScript: "function handle() { return { status: 200, body: 'behind' } }"
    - hosts: ["127.0.0.1", "localhost"]
      uri: /api/closed
      authChain: login-with-groups
      azRules:
        - scope: filter
          constraint: (groups=no-one)
      filterChain:
        - className: com.tremolosecurity.proxy.filters.JavaScriptFilter
          params:
            javaScript: |-
              function initFilter(config) {}
              function doFilter(request, response, chain) { response.getWriter().print("reached"); }
`

let gateway: GatewayProcess
let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gatehouse-scripts-'))
  const config = join(folder, 'config')
  await cp('examples/login', config, { recursive: true })
  await writeFile(join(config, 'scripts.yaml'), objects)
  const dataFolder = join(folder, 'data')
  for (const login of ['ada', 'eve', 'looper']) {
    const args = ['user', 'add', login, '--config', config, '--data', dataFolder]
    expect(await runCommand(args, `${password}\n`)).toMatchObject({ code: 0 })
  }
  gateway = await startGatewayProcess({ config, dataFolder })
}, 120_000)

afterAll(async () => {
  await gateway.stop()
  await rm(folder, { recursive: true, force: true })
})

test('a mechanism in JavaScript adds groups that rules and filters see', async () => {
  const browser = new PlainBrowser(gateway.url)
  const done = await browser.logIn('/api', 'ada', password)
  const page = await browser.get(done.location)
  expect([page.status, page.body, page.headers.get('x-script')]).toEqual([200, '["staff-of-ada"]', 'seen'])
  const next = await browser.get('/api?do=next')
  expect([next.status, next.body, next.headers.get('x-script')]).toEqual([200, 'behind', 'seen'])
  expect((await browser.get('/api/closed')).status).toBe(403)
})

test('no script lets a caller pass whom the chain or its own answer rejects', async () => {
  expect((await fetch(`${gateway.url}/api`, { headers: { accept: 'application/json' } })).status).toBe(401)
  const refused = await new PlainBrowser(gateway.url).logIn('/api', 'eve', password)
  expect([refused.status, refused.location]).toEqual([401, ''])
  const stopped = await new PlainBrowser(gateway.url).logIn('/api', 'looper', password)
  expect(stopped.status).toBe(500)
}, 60_000)

test.each(['loop', 'throw', 'inject', 'huge'])(
  'a filter that fails (%s) answers 500 without details, and the next request is answered',
  async (action) => {
    const browser = new PlainBrowser(gateway.url)
    await browser.logIn('/api', 'ada', password)
    const failed = await browser.get(`/api?do=${action}`)
    expect(failed.status).toBe(500)
    expect(failed.body).not.toMatch(/detail|script|reached|xxx/)
    expect(failed.headers.get('set-cookie') ?? '').not.toContain('stolen')
    expect((await browser.get('/api')).status).toBe(200)
  },
  60_000,
)

test('check accepts the objects', async () => {
  const { code, stdout } = await runCommand(['check', '--config', join(folder, 'config')])
  expect([code, stdout]).toEqual([0, ''])
  expect(await readFile(join(folder, 'config', 'scripts.yaml'), 'utf8')).toBe(objects)
})
