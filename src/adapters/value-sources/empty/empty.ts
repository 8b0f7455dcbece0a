import { defineValueSource } from '#sdk/mapper/mapper-module.ts'

/** No list: accepts every value that the field's own rules allow. */
export default defineValueSource({
  className: 'sources.Empty',
  aliases: ['com.tremolosecurity.scalejs.register.dynamicSource.EmptySource'],
  parameters: {},
  parse: () => ({}),
  create: () => ({ list: async () => [], check: async () => undefined }),
})
