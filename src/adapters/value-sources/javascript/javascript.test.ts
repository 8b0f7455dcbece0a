import { expect, onTestFinished, test } from 'vitest'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import javaScript from './javascript.ts'

const anonymous = subject('uid=anonymous,o=Tremolo', {}, 0)

async function open(code: string) {
  const issues = noIssues()
  const prepared = javaScript.prepare(fakeParams({ javaScript: code, kind: 'x' }), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  const source = await prepared.create(fakeModuleHost())
  onTestFinished(async () => source.close?.())
  return source
}

test('a plug-in returns the list and checks values', async () => {
  const source = await open(`
    let kind
    function init(name, config) { kind = config.kind[0] }
    function getSourceList({ search, limit, subject }) {
      return [{ name: 'N', value: kind + (search ?? '') + subject.uid }, { name: 'M', value: 'm' }].slice(0, limit + 1)
    }
    function validate(value) { return value === 'ok' ? null : 'not this one' }
  `)
  expect(await source.list({ search: 's', limit: 1, subject: anonymous })).toEqual([
    { name: 'N', value: `xs${anonymous.uid}` },
  ])
  expect(await source.check('ok', anonymous)).toBeUndefined()
  expect(await source.check('no', anonymous)).toBe('not this one')
})

test('an invalid answer is rejected', async () => {
  const source = await open(`
    function getSourceList() { return [{ name: 'x' }] }
    function validate() { return 7 }
  `)
  await expect(source.list({ limit: 1, subject: anonymous })).rejects.toMatchObject({ code: 'TARGET_FAILED' })
  expect(await source.check('x', anonymous)).toBe('has a value that cannot be used')
})

test('both functions are required', async () => {
  await expect(open('function getSourceList() { return [] }')).rejects.toThrow('validate')
})

test('a script of OpenUnison gets a request with the caller, and returns pairs', async () => {
  const source = await open(`
    ArrayList = Java.type("java.util.ArrayList");
    NVP = Java.type("com.tremolosecurity.util.NVP");
    ProxyConstants = Java.type("com.tremolosecurity.proxy.util.ProxyConstants");
    function init(attribute, config) { globals.put("kind", config.get("kind").getValues().get(0)); }
    function getSourceList(request) {
      var user = request.getSession().getAttribute(ProxyConstants.AUTH_CTL).getAuthInfo();
      var found = new ArrayList();
      var groups = user.getAttribs().get("groups").getValues();
      for (var i = 0; i < groups.size(); i++) found.add(new NVP(globals.get("kind") + " " + groups.get(i), groups.get(i)));
      return found;
    }
    function validate(value, request) {
      var all = getSourceList(request);
      for (var i = 0; i < all.size(); i++) if (all.get(i).getValue() == value) return null;
      return "is not one of your groups";
    }
  `)
  const ann = subject('uid=ann,o=Tremolo', { groups: ['blue', 'red'] })
  expect(await source.list({ limit: 10, subject: ann })).toEqual([
    { name: 'x blue', value: 'blue' },
    { name: 'x red', value: 'red' },
  ])
  expect(await source.check('red', ann)).toBeUndefined()
  expect(await source.check('green', ann)).toBe('is not one of your groups')
})
