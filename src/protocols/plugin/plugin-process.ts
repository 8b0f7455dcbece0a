/**
 * The program of a plug-in's process. It is read, stripped of its types and given to a new Node.js on its standard
 * input, so it imports nothing but Node.js itself. It speaks the messages of plugin-messages.ts on descriptor 3.
 */
import { registerHooks } from 'node:module'
import { Socket } from 'node:net'
import { constants, Script } from 'node:vm'
import type { HostMessage, LogLevel, PluginMessage, ThrownError } from '#protocols/plugin/plugin-messages.ts'
import type { RealmOptions } from '#protocols/plugin/realm-process.ts'

type Call = Extract<HostMessage, { kind: 'call' }>
type Start = Extract<HostMessage, { kind: 'start' }>
type PluginFunction = (...args: unknown[]) => unknown

const maxAnswerLength = 16 * 1024 * 1024
const maxTextLength = 8192
const { stringify, parse } = JSON
const { exit } = process

const socket = new Socket({ fd: 3, readable: true, writable: true })
const functions = new Map<string, PluginFunction>()

const send = (message: PluginMessage): void => void socket.write(`${stringify(message)}\n`)

/** The map that older plug-ins keep values in between calls. Values may also be set as plain properties. */
class State extends Map<string, unknown> {
  put(name: string, value: unknown): void {
    this.set(name, value)
  }
}

async function start(message: Start): Promise<void> {
  const { code, url, functions: names, globals, realm } = message
  if (realm !== undefined) {
    for (const [name, value] of await openRealm(message, realm)) functions.set(name, value)
    send({ kind: 'ready', functions: [...functions.keys()] })
    return
  }
  Object.assign(globalThis, { state: new State(Object.entries(globals)) }, globals)
  const lookUp = names.map((name) => `${name}: typeof ${name} === 'function' ? ${name} : undefined`).join(', ')
  const found = code.form === 'script' ? runScript(code.text, url, lookUp) : await importModule(code.text, url, lookUp)
  for (const name of names) {
    const value = found[name]
    if (typeof value === 'function') functions.set(name, value as PluginFunction)
  }
  send({ kind: 'ready', functions: [...functions.keys()] })
}

/** The script sees nothing of this program; its functions answer at once. */
async function openRealm({ code, url, functions: names, globals }: Start, realm: NonNullable<Start['realm']>) {
  const program = (await import(`data:text/javascript;base64,${Buffer.from(realm.program).toString('base64')}`)) as {
    openRealm(options: RealmOptions): Promise<Map<string, PluginFunction>>
  }
  return program.openRealm({
    realm: realm.code,
    httpProgram: realm.httpProgram,
    text: code.text,
    url,
    functions: names,
    settings: { name: globals['name'], hasTask: 'task' in globals },
    timeoutMillis: realm.timeoutMillis,
    log: (level, text) => logger()[level as LogLevel]?.(text),
  })
}

/** A second script sees every top-level declaration of the first, so no declaration has to be searched for in its text. */
function runScript(text: string, url: string, lookUp: string): Record<string, unknown> {
  const importModuleDynamically = constants.USE_MAIN_CONTEXT_DEFAULT_LOADER
  new Script(text, { filename: url, importModuleDynamically }).runInThisContext()
  return new Script(`({ ${lookUp} })`).runInThisContext() as Record<string, unknown>
}

/** What is declared but not exported is found by an export behind the text; what is exported under its name goes first. */
async function importModule(text: string, url: string, lookUp: string): Promise<Record<string, unknown>> {
  let found = 'declaredFunctions'
  while (text.includes(found)) found += '_'
  const source = `${text}\n;export const ${found} = { ${lookUp} }`
  registerHooks({
    resolve: (specifier, context, next) => (specifier === url ? { url, shortCircuit: true } : next(specifier, context)),
    load: (loaded, context, next) =>
      loaded === url ? { format: 'module', source, shortCircuit: true } : next(loaded, context),
  })
  const exported = (await import(url)) as Record<string, unknown>
  const standard = exported['default']
  return {
    ...(exported[found] as Record<string, unknown>),
    ...(typeof standard === 'object' ? standard : {}),
    ...exported,
  }
}

async function call({ id, function: name, args, request, returnArguments }: Call): Promise<void> {
  let open = true
  try {
    const given: unknown[] = [...args]
    if (request !== undefined) given[request] = withServices(given[request], id, () => open)
    const value = await functions.get(name)?.(...given)
    answer({ kind: 'answer', id, ...json('value', value), ...(returnArguments ? json('args', given) : {}) })
  } catch (thrown) {
    send({ kind: 'threw', id, error: describe(thrown) })
  } finally {
    open = false
  }
}

const json = (name: string, value: unknown) => (value === undefined ? {} : { [name]: value })

function answer(message: object): void {
  const line = stringify(message)
  if (line.length >= maxAnswerLength) throw new Error(`the answer is longer than ${maxAnswerLength} characters`)
  socket.write(`${line}\n`)
}

function withServices(request: unknown, id: number, isOpen: () => boolean): object {
  const audit = (entry: unknown): void => {
    if (!isOpen()) throw new Error('audit was called after the function had ended')
    const { subject, action, attribute, value } = Object(entry) as Record<string, unknown>
    if (action !== 'add' && action !== 'replace' && action !== 'delete') {
      throw new TypeError('audit: action must be "add", "replace" or "delete"')
    }
    if (typeof attribute !== 'string') throw new TypeError('audit: attribute must be a text')
    send({ kind: 'audit', id, entry: { ...json('subject', subject), action, attribute, ...json('value', value) } })
  }
  return Object.assign(Object(request), { log: logger(id), audit })
}

/** `log(message, fields)` and `log.warn(message, fields)`; also what `console` does here. */
function logger(id?: number) {
  const at = (level: LogLevel) => (message: unknown, fields?: unknown) =>
    send({ kind: 'log', level, message: textOf(message), ...json('id', id), ...fieldsOf(fields) })
  return Object.assign(at('info'), {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    log: at('info'),
  })
}

function fieldsOf(fields: unknown): object {
  if (fields === undefined) return {}
  try {
    const text = stringify(fields)
    return text.length > maxTextLength ? {} : { fields: parse(text) }
  } catch {
    return {}
  }
}

function describe(thrown: unknown): ThrownError {
  try {
    const { code, status, stack } = Object(thrown) as Record<string, unknown>
    const word = code ?? status
    return {
      message: thrown instanceof Error ? textOf(thrown.message) : `threw ${textOf(thrown)}`,
      ...(typeof stack === 'string' ? { stack: textOf(stack) } : {}),
      ...(typeof word === 'string' ? { code: textOf(word) } : {}),
    }
  } catch {
    return { message: 'threw something that cannot be described' }
  }
}

function textOf(value: unknown): string {
  try {
    const text = typeof value === 'string' ? value : typeof value === 'object' ? stringify(value) : String(value)
    return text.slice(0, maxTextLength)
  } catch {
    return 'something that cannot be written as text'
  }
}

let received = ''
let started: Promise<void> | undefined
socket.setEncoding('utf8')
socket.on('data', (chunk: string) => {
  received += chunk
  const lines = received.split('\n')
  received = lines.pop() ?? ''
  for (const line of lines) {
    const message = parse(line) as HostMessage
    if (message.kind === 'call') void started?.then(() => call(message))
    else started = start(message).catch((thrown) => send({ kind: 'refused', error: describe(thrown) }))
  }
})
socket.on('error', () => exit())
socket.on('close', () => exit())

Object.assign(console, logger())
Object.assign(process, {
  kill: () => {
    throw new Error('a plug-in must not send signals')
  },
})
