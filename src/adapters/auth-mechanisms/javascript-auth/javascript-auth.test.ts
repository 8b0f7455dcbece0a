import { afterEach, describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import type { Subject } from '#identity/subject.ts'
import type { AuthMechanism, AuthOutcome } from '#sdk/auth/auth-mechanism.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import javaScriptAuth from './javascript-auth.ts'

const opened: AuthMechanism[] = []
const caller = subject('uid=ada,ou=people,o=Tremolo', { uid: ['ada'], memberOf: ['old'], mail: ['a@x.test'] })
const entry = (uid: string, more: Record<string, string[]> = {}) => ({
  dn: Dn.parse(`uid=${uid},ou=people,o=Tremolo`),
  attributes: Attributes.from({ objectClass: ['person'], uid: [uid], cn: [`The ${uid}`], ...more }),
})

afterEach(async () => {
  await Promise.all(opened.splice(0).map((mechanism) => mechanism.close?.()))
})

function prepare(params: ParamValues) {
  const issues = noIssues()
  const prepared = javaScriptAuth.prepare(fakeParams(params), fakeParams({}), issues, fakeParseContext())
  return { prepared, texts: issueTexts(issues.list) }
}

async function open(js: string, params: ParamValues = {}): Promise<AuthMechanism> {
  const { prepared, texts } = prepare({ js, ...params })
  expect(texts).toEqual([])
  const entries = [entry('ada'), entry('bob'), entry('off', { active: ['false'] })]
  const mechanism = await prepared.create({ ...fakeModuleHost({ entries }), name: 'js' })
  opened.push(mechanism)
  return mechanism
}

const begin = (mechanism: AuthMechanism, found: Subject | undefined, headers: Record<string, string> = {}) =>
  mechanism.begin({ request: fakeRequest({ headers }), subject: found, root: 'o=Tremolo' })

/** The documented form: session, holder, controller, and the end of every script. */
const doing = (body: string, accepts = true): string => `
  Attribute = Java.type("com.tremolosecurity.saml.Attribute");
  AuthInfo = Java.type("com.tremolosecurity.proxy.auth.AuthInfo");
  ProxyConstants = Java.type("com.tremolosecurity.proxy.util.ProxyConstants");
  function doAuth(request, response, as) {
    var session = request.getSession();
    var holder = request.getAttribute(ProxyConstants.AUTOIDM_CFG);
    var ac = session.getAttribute(ProxyConstants.AUTH_CTL);
    ${body}
    ${accepts ? 'as.setExecuted(true); as.setSuccess(true); holder.getConfig().getAuthManager().nextAuth(request, response, session, false);' : ''}
  }`

function accepted(outcome: AuthOutcome) {
  if (outcome.kind !== 'authenticated') throw new Error(JSON.stringify(outcome))
  return outcome.subject
}

describe('a user that earlier mechanisms established', () => {
  test('gets the attributes that the script sets, as claims', async () => {
    const mechanism = await open(
      doing(`
        var memberof = ac.getAuthInfo().getAttribs().get("memberOf");
        memberof.getValues().clear(); memberof.getValues().add("new");
        ac.getAuthInfo().getAttribs().put("level", new Attribute("level", "" + ac.getAuthInfo().getAuthLevel()));
        ac.getAuthInfo().getAttribs().remove("mail");`),
    )
    const found = accepted(await begin(mechanism, caller))
    expect(found.attributes.toObject()).toEqual({ uid: ['ada'], memberOf: ['new'], level: ['20'] })
    expect(['uid', 'memberOf', 'level'].map((name) => found.attributes.isClaim(name))).toEqual([false, true, true])
    expect([found.dn.toString(), found.uid, found.identity]).toEqual([
      caller.dn.toString(),
      caller.uid,
      caller.identity,
    ])
    expect(accepted((await mechanism.renew?.(caller)) as AuthOutcome).attributes.values('memberOf')).toEqual(['new'])
  })

  test('keeps the name', async () => {
    const mechanism = await open(doing('ac.getAuthInfo().setUserDN("uid=bob,ou=people,o=Tremolo")'))
    expect(await begin(mechanism, caller)).toMatchObject({ kind: 'rejected', reason: expect.stringContaining('name') })
  })
})

describe('a user that the script names', () => {
  const naming = (dn: string): string =>
    doing(`
      var act = holder.getConfig().getAuthChains().get(ac.getHolder().getAuthChainName());
      var authInfo = new AuthInfo(${dn}, session.getAttribute(ProxyConstants.AUTH_MECH_NAME), act.getName(), act.getLevel(), null);
      authInfo.getAttribs().put("by", new Attribute("by", session.getAttribute(ProxyConstants.AUTH_MECH_PARAMS).get("by").getValues().get(0)));
      ac.setAuthInfo(authInfo);`)

  test('is an entry of the directory, with its attributes', async () => {
    const mechanism = await open(naming('"uid=" + request.getHeader("X-User") + ",ou=people,o=Tremolo"'), { by: 'key' })
    const found = accepted(await begin(mechanism, undefined, { 'x-user': 'bob' }))
    expect([found.dn.toString(), found.uid]).toEqual(['uid=bob,ou=people,o=Tremolo', 'bob'])
    expect(found.attributes.toObject()).toMatchObject({ cn: ['The bob'], by: ['key'] })
    expect(found.link).toBeDefined()
  })

  test.each([
    ['"uid=none,ou=people,o=Tremolo"', /not in the directory/],
    ['"nonsense"', /not the name of an entry/],
    ['"uid=off,ou=people,o=Tremolo"', /deactivated/],
  ])('%s is rejected', async (dn, reason) => {
    const mechanism = await open(naming(dn), { by: 'x' })
    expect(await begin(mechanism, undefined)).toMatchObject({ kind: 'rejected', reason: expect.stringMatching(reason) })
  })

  test('does not replace the user of a session', async () => {
    const mechanism = await open(naming('"uid=bob,ou=people,o=Tremolo"'), { by: 'x' })
    expect(await mechanism.renew?.(caller)).toMatchObject({
      kind: 'rejected',
      reason: expect.stringContaining('another'),
    })
  })
})

describe('everything but an explicit yes rejects', () => {
  test.each([
    ['', /did not accept/],
    ['as.setSuccess(true)', /did not accept/],
    ['as.setExecuted(true); as.setSuccess("yes"); holder.getConfig().getAuthManager().nextAuth()', /did not accept/],
    ['as.setExecuted(true); as.setSuccess(false); holder.getConfig().getAuthManager().nextAuth()', /did not accept/],
    ['as.setExecuted(true); as.setSuccess(true)', /nextAuth/],
    ['return true', /did not accept/],
  ])('%s', async (body, reason) => {
    const mechanism = await open(doing(body, false))
    expect(await begin(mechanism, caller)).toMatchObject({ kind: 'rejected', reason: expect.stringMatching(reason) })
  })

  test('no user at all', async () => {
    expect(await begin(await open(doing('')), undefined)).toMatchObject({
      kind: 'rejected',
      reason: expect.stringContaining('no user'),
    })
    expect(await begin(await open(doing('ac.setAuthInfo(null)')), caller)).toMatchObject({ kind: 'rejected' })
  })

  test.each(['throw new Error("detail")', 'for (;;) {}', 'ac.setAuthInfo({ getUserDN: () => "uid=bob,o=Tremolo" })'])(
    'a script that fails is a 500: %s',
    async (body) => {
      const mechanism = await open(doing(body), { timeoutSeconds: '2' })
      await expect(begin(mechanism, caller)).rejects.toMatchObject({ code: 'INTERNAL' })
    },
    30_000,
  )
})

test('check reports what is not served', () => {
  expect(prepare({}).texts).toEqual(['error params.js: parameter "js" is required'])
  expect(
    prepare({ js: 'function doAuth(request, response, as) { response.sendRedirect("https://x.test") }' }).texts,
  ).toEqual([
    'error params.js: "js": line 1: jakarta.servlet.http.HttpServletResponse.sendRedirect() is not served; a script accepts or rejects, and auth.OpenIDConnect and auth.FormLogin ask the user',
  ])
})
