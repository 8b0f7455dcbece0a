import { type LegacySignatures, parameter } from '#openunison/scripts/legacy-signatures.ts'
import { defineAuthorization } from '#sdk/auth/authorization.ts'
import { PluginAnswerReader } from '#sdk/plugin/plugin-answer.ts'
import { openPlugin, type PluginCode, parsePluginCode, pluginParameters } from '#sdk/plugin/plugin-code.ts'

const functionName = 'isAuthorized'
const listName = 'listPossibleApprovers'

/** The form of OpenUnison's scripts. */
const legacySignatures: LegacySignatures = {
  init: [parameter('attributes', 0)],
  [functionName]: [parameter('subject', 0), parameter('texts', 1)],
  [listName]: [parameter('texts', 0)],
}

/** A rule written in JavaScript. Only the answer `true` allows; an answer that is not a boolean is a failure. */
export default defineAuthorization<PluginCode>({
  className: 'authorizations.JavaScript',
  aliases: ['com.tremolosecurity.customaz.JavaScriptAz'],
  parameters: pluginParameters,
  parse: parsePluginCode(legacySignatures),
  create: async (code, host) => {
    const plugin = await openPlugin(code, host, {
      name: `authorization "${host.name}"`,
      functions: ['init', functionName, listName, 'shutdown'],
      required: [functionName],
      init: [code.config],
    })
    return {
      async isAuthorized({ dn, uid, attributes, level, chain }, params) {
        const subject = { dn: dn.toString(), uid, attributes: attributes.toObject(), level, chain }
        const { value } = await plugin.call({ function: functionName, args: [subject, params] })
        return new PluginAnswerReader(functionName).flag(value)
      },
      ...(plugin.has(listName) && {
        async listPossibleApprovers(params: readonly string[]) {
          const { value } = await plugin.call({ function: listName, args: [params] })
          return new PluginAnswerReader(listName).texts(value, 'it')
        },
      }),
      close: () => plugin.close(),
    }
  },
})
