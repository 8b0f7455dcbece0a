import { afterEach, expect, test } from 'vitest'
import type { MappingSource } from '#identity/mapping/mapped-value.ts'
import type { Mapper } from '#sdk/target/mapper.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import javaScriptMapping from './javascript-mapping.ts'

const opened: Mapper[] = []
const source: MappingSource = {
  userID: 'ada',
  groups: ['a'],
  names: () => ['mail', 'name'],
  values: (name) => (name === 'mail' ? ['a@x.test', 'b@x.test'] : []),
  json: (name) => (name === 'name' ? { givenName: 'Ada' } : undefined),
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map((mapper) => mapper.close?.()))
})

async function open(text: string, parameters = ['k8s', 'openunison', 'mapping']): Promise<Mapper> {
  const issues = noIssues()
  const instance = javaScriptMapping.prepare(parameters, [], issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  const texts = new Map([
    ['mapping', text],
    ['shared', 'function shared(text) { return "shared " + text }'],
  ])
  const mapper = await instance?.create({ ...fakeModuleHost(), javaScript: (name) => texts.get(name) })
  if (mapper === undefined) throw new Error('not prepared')
  opened.push(mapper)
  return mapper
}

test.each([
  ['a text', 'return user.attributes.mail[0]', ['a@x.test']],
  ['a list', 'return user.attributes.mail', ['a@x.test', 'b@x.test']],
  ['an object with values', 'return { values: [attributeName, user.userID, ...user.groups] }', ['target', 'ada', 'a']],
  ['complex values', 'return user.json.name.givenName', ['Ada']],
  ['nothing', 'return null', []],
  ['nothing at all', '', []],
])('%s', async (_, body, expected) => {
  const mapper = await open(`function doMapping(user, attributeName) { ${body} }`)
  expect(await mapper.map(source, 'target')).toEqual(expected)
})

test('included code comes first, and the name alone is enough', async () => {
  const included = await open('function doMapping(user) { return shared(user.userID) }', [
    't',
    'n',
    'mapping',
    'shared',
  ])
  expect(await included.map(source, 'x')).toEqual(['shared ada'])
  const short = await open('function doMapping(user) { return user.userID }', ['mapping'])
  expect(await short.map(source, 'x')).toEqual(['ada'])
})

test.each([
  ['throw new Error("no")', /no/],
  ['return 42', /must be a list of texts/],
  ['return [1]', /must be a list of texts/],
  ['return { value: "x" }', /must be a list of texts/],
])('a failure fails the mapping rather than losing the value: %s', async (body, message) => {
  const mapper = await open(`function doMapping() { ${body} }`)
  await expect(mapper.map(source, 'x')).rejects.toMatchObject({
    code: 'TARGET_FAILED',
    message: expect.stringMatching(message),
  })
})

test('unusable code is rejected on creation', async () => {
  await expect(open('function other() {}')).rejects.toThrow(/has no function doMapping/)
  await expect(open('function doMapping( {')).rejects.toThrow(/line 1/)
  await expect(open('', ['a', 'b', 'absent'])).rejects.toThrow(/no JavaScript or JavaScriptMapping "absent"/)
})

test('the expression is checked and its objects must exist', () => {
  const context = fakeParseContext()
  const issues = noIssues()
  const path = ['source']
  expect(javaScriptMapping.prepare(['k8s', 'ns'], path, issues, context)).toBeUndefined()
  expect(issueTexts(issues.list)).toEqual([
    'error source: the mapper takes "target,namespace,name[,includes]" or "name"',
  ])
  javaScriptMapping.prepare(['k8s', 'ns', 'one', 'two'], path, noIssues(), context)
  expect(context.references.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
    'javascript mapping one',
    'javascript mapping two',
  ])
})

test('a source that cannot list its attributes is an error, not an empty user', async () => {
  const mapper = await open('function doMapping(user) { return user.userID }')
  const { names: _, ...unlisted } = source
  await expect(mapper.map(unlisted, 'x')).rejects.toMatchObject({ code: 'INTERNAL' })
})

test('a legacy script gets a User and returns an Attribute', async () => {
  const mapper = await open(`
    Attribute = Java.type("com.tremolosecurity.saml.Attribute");
    function doMapping(user, name) {
      var mails = user.getAttribs().get("mail").getValues();
      var made = new Attribute(name);
      for (var i = 0; i < mails.length; i++) {
        made.getValues().add(mails.get(i).substring(0, mails.get(i).indexOf("@")));
      }
      made.getValues().add(user.getUserID() + user.getGroups().get(0) + name);
      return made;
    }`)
  expect(await mapper.map(source, 'target')).toEqual(['a', 'b', 'adaatarget'])
})
