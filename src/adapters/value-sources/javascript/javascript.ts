import { type LegacySignatures, parameter, value } from '#openunison/scripts/legacy-signatures.ts'
import type { ModuleHost } from '#sdk/host/host.ts'
import { defineValueSource } from '#sdk/mapper/mapper-module.ts'
import { PluginAnswerReader } from '#sdk/plugin/plugin-answer.ts'
import { openPlugin, type PluginCode, parsePluginCode, pluginParameters } from '#sdk/plugin/plugin-code.ts'
import { plainSubject } from '#sdk/plugin/plugin-request.ts'
import type { SourceItem, ValueSource } from '#sdk/target/mapper.ts'
import { notInSource } from '#sdk/target/mapper.ts'

const idleMillis = 30_000
const maxTextLength = 2_000

/** The form of OpenUnison's scripts. */
const legacySignatures: LegacySignatures = {
  init: [value(0), parameter('attributes', 1)],
  getSourceList: [parameter('callerRequest', 0)],
  validate: [value(0), parameter('callerRequest', 1)],
}

/** Values from a plug-in: `getSourceList({search, limit, subject})` and `validate(value, {subject})`. */
export default defineValueSource<PluginCode>({
  className: 'sources.JavaScript',
  aliases: ['com.tremolosecurity.scalejs.register.dynamicSource.JavaScriptSource'],
  parameters: pluginParameters,
  parse: parsePluginCode(legacySignatures),
  create: openJavaScriptSource,
})

async function openJavaScriptSource(code: PluginCode, host: ModuleHost): Promise<ValueSource> {
  const plugin = await openPlugin(code, host, {
    name: `a value source of "${host.name}"`,
    functions: ['init', 'getSourceList', 'validate', 'shutdown'],
    required: ['getSourceList', 'validate'],
    init: [host.name, code.config],
    idleMillis,
  })
  return {
    async list({ search, limit, subject }) {
      const asked = { ...(search === undefined ? {} : { search }), limit, subject: plainSubject(subject) }
      const { value } = await plugin.call({ function: 'getSourceList', args: [asked] })
      const reader = new PluginAnswerReader('getSourceList')
      if (!Array.isArray(value)) throw reader.malformed('it must be a list')
      return value.slice(0, limit).map((item, index): SourceItem => {
        const inItem = reader.at(index)
        const object = inItem.object(item)
        return { name: inItem.text(object['name'], 'name'), value: inItem.text(object['value'], 'value') }
      })
    },
    async check(given, subject) {
      const { value } = await plugin.call({ function: 'validate', args: [given, { subject: plainSubject(subject) }] })
      if (value === undefined || value === null || value === true) return undefined
      return typeof value === 'string' && value !== '' ? value.slice(0, maxTextLength) : notInSource
    },
    close: () => plugin.close(),
  }
}
