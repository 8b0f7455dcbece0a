// @ts-check
/**
 * The program of a plug-in's process. It is given as it stands to a new Node.js on its standard input, so it imports nothing but
 * Node.js itself, and is JavaScript, since taking types out costs the gateway 17 MB. It speaks the messages of
 * plugin-messages.ts on descriptor 3.
 */
import { readSync, writeSync } from 'node:fs'
import { registerHooks, syncBuiltinESMExports } from 'node:module'
import { Socket } from 'node:net'
import os from 'node:os'
import { constants, Script } from 'node:vm'

/**
 * @import { LogLevel } from '#kernel/logger.ts'
 * @import { HostMessage, PluginMessage, ThrownError } from '#protocols/plugin/plugin-messages.ts'
 * @import { RealmOptions } from '#protocols/plugin/realm-process.ts'
 * @typedef {Extract<HostMessage, { kind: 'call' }>} Call
 * @typedef {Extract<HostMessage, { kind: 'start' }>} Start
 * @typedef {(...args: unknown[]) => unknown} PluginFunction
 */

const maxAnswerLength = 16 * 1024 * 1024
const maxTextLength = 8192
const { stringify, parse } = JSON
const { exit } = process

const socket = new Socket({ fd: 3, readable: true, writable: true })
/** @type {Map<string, PluginFunction>} */
const functions = new Map()

/** @param {PluginMessage} message */
const send = (message) => void socket.write(`${stringify(message)}\n`)

/**
 * The map that older plug-ins keep values in between calls. Values may also be set as plain properties.
 * @extends {Map<string, unknown>}
 */
class State extends Map {
  /**
   * @param {string} name
   * @param {unknown} value
   */
  put(name, value) {
    this.set(name, value)
  }
}

/** @param {Start} message */
async function start(message) {
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
    if (typeof value === 'function') functions.set(name, /** @type {PluginFunction} */ (value))
  }
  send({ kind: 'ready', functions: [...functions.keys()] })
}

/**
 * The script sees nothing of this program; its functions answer at once.
 * @param {Start} message
 * @param {NonNullable<Start['realm']>} realm
 */
async function openRealm({ code, url, functions: names, globals }, realm) {
  /** @type {{ openRealm(options: RealmOptions): Promise<Map<string, PluginFunction>> }} */
  const program = await import(`data:text/javascript;base64,${Buffer.from(realm.program).toString('base64')}`)
  return program.openRealm({
    realm: realm.code,
    httpProgram: realm.httpProgram,
    proxyVariables: realm.proxyVariables,
    text: code.text,
    url,
    functions: names,
    settings: { name: globals['name'], hasTask: 'task' in globals },
    timeoutMillis: realm.timeoutMillis,
    askGateway,
    log: (level, text) => logger()[/** @type {LogLevel} */ (level)]?.(text),
  })
}

const serviceSocket = 4
/** The call whose function runs; functions of a realm run one after the other. */
let running = 0

/**
 * Asks the gateway, and waits for its answer.
 * @param {string} request JSON
 * @returns {string} JSON
 */
function askGateway(request) {
  const line = Buffer.from(`{"id":${running},"request":${request}}\n`)
  for (let sent = 0; sent < line.length; ) sent += writeSync(serviceSocket, line, sent)
  const parts = []
  for (;;) {
    const chunk = Buffer.alloc(65_536)
    const length = readSync(serviceSocket, chunk)
    if (length === 0) exit()
    parts.push(chunk.subarray(0, length))
    if (chunk[length - 1] === 10) return Buffer.concat(parts).toString()
  }
}

/**
 * A second script sees every top-level declaration of the first, so no declaration has to be searched for in its text.
 * @param {string} text
 * @param {string} url
 * @param {string} lookUp
 * @returns {Record<string, unknown>}
 */
function runScript(text, url, lookUp) {
  const importModuleDynamically = constants.USE_MAIN_CONTEXT_DEFAULT_LOADER
  new Script(text, { filename: url, importModuleDynamically }).runInThisContext()
  return new Script(`({ ${lookUp} })`).runInThisContext()
}

/**
 * What is declared but not exported is found by an export behind the text; what is exported under its name goes first.
 * @param {string} text
 * @param {string} url
 * @param {string} lookUp
 * @returns {Promise<Record<string, unknown>>}
 */
async function importModule(text, url, lookUp) {
  let found = 'declaredFunctions'
  while (text.includes(found)) found += '_'
  const source = `${text}\n;export const ${found} = { ${lookUp} }`
  registerHooks({
    resolve: (specifier, context, next) => (specifier === url ? { url, shortCircuit: true } : next(specifier, context)),
    load: (loaded, context, next) =>
      loaded === url ? { format: 'module', source, shortCircuit: true } : next(loaded, context),
  })
  /** @type {Record<string, unknown>} */
  const exported = await import(url)
  const standard = exported['default']
  return {
    ...Object(exported[found]),
    ...(typeof standard === 'object' ? standard : {}),
    ...exported,
  }
}

/** @param {Call} message */
async function call({ id, function: name, args, request, returnArguments }) {
  let open = true
  try {
    /** @type {unknown[]} */
    const given = [...args]
    running = id
    if (request !== undefined) given[request] = withServices(given[request], id, () => open)
    const value = await functions.get(name)?.(...given)
    answer({ kind: 'answer', id, ...json('value', value), ...(returnArguments ? json('args', given) : {}) })
  } catch (thrown) {
    send({ kind: 'threw', id, error: describe(thrown) })
  } finally {
    open = false
  }
}

/**
 * @param {string} name
 * @param {unknown} value
 */
const json = (name, value) => (value === undefined ? {} : { [name]: value })

/** @param {object} message */
function answer(message) {
  const line = stringify(message)
  if (line.length >= maxAnswerLength) throw new Error(`the answer is longer than ${maxAnswerLength} characters`)
  socket.write(`${line}\n`)
}

/**
 * @param {unknown} request
 * @param {number} id
 * @param {() => boolean} isOpen
 */
function withServices(request, id, isOpen) {
  /** @param {unknown} entry */
  const audit = (entry) => {
    if (!isOpen()) throw new Error('audit was called after the function had ended')
    const { subject, action, attribute, value } = Object(entry)
    if (action !== 'add' && action !== 'replace' && action !== 'delete') {
      throw new TypeError('audit: action must be "add", "replace" or "delete"')
    }
    if (typeof attribute !== 'string') throw new TypeError('audit: attribute must be a text')
    send({ kind: 'audit', id, entry: { ...json('subject', subject), action, attribute, ...json('value', value) } })
  }
  return Object.assign(Object(request), { log: logger(id), audit })
}

/**
 * `log(message, fields)` and `log.warn(message, fields)`; also what `console` does here.
 * @param {number} [id]
 */
function logger(id) {
  /** @type {(level: LogLevel) => (message: unknown, fields?: unknown) => void} */
  const at = (level) => (message, fields) =>
    send({ kind: 'log', level, message: textOf(message), ...json('id', id), ...fieldsOf(fields) })
  return Object.assign(at('info'), {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    log: at('info'),
  })
}

/** @param {unknown} fields */
function fieldsOf(fields) {
  if (fields === undefined) return {}
  try {
    const text = stringify(fields)
    return text.length > maxTextLength ? {} : { fields: parse(text) }
  } catch {
    return {}
  }
}

/**
 * @param {unknown} thrown
 * @returns {ThrownError}
 */
function describe(thrown) {
  try {
    const { code, status, stack } = Object(thrown)
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

/**
 * @param {unknown} value
 * @returns {string}
 */
function textOf(value) {
  try {
    const text = typeof value === 'string' ? value : typeof value === 'object' ? stringify(value) : String(value)
    return text.slice(0, maxTextLength)
  } catch {
    return 'something that cannot be written as text'
  }
}

let received = ''
/** @type {Promise<void> | undefined} */
let started
socket.setEncoding('utf8')
socket.on('data', (chunk) => {
  received += chunk
  const lines = received.split('\n')
  received = lines.pop() ?? ''
  for (const line of lines) {
    /** @type {HostMessage} */
    const message = parse(line)
    if (message.kind === 'call') void started?.then(() => call(message))
    else started = start(message).catch((thrown) => send({ kind: 'refused', error: describe(thrown) }))
  }
})
socket.on('error', () => exit())
socket.on('close', () => exit())

Object.assign(console, logger())
// Permissions don't cover signals: one makes the gateway listen for a debugger, others end it.
const signal = () => {
  throw new Error('a plug-in must not send signals')
}
Object.assign(process, { kill: signal, _kill: signal, _debugProcess: signal })
os.setPriority = () => {
  throw new Error('a plug-in must not change priorities')
}
syncBuiltinESMExports()
