import { createRegistry } from '#kernel/registry.ts'
import compositeNoReturn from '#modules/mappers/composite-no-return/composite-no-return.ts'
import defaultEmail from '#modules/mappers/default-email/default-email.ts'
import generateGroups from '#modules/mappers/generate-groups/generate-groups.ts'
import javaScriptMapping from '#modules/mappers/javascript-mapping/javascript-mapping.ts'
import pluginMapper from '#modules/mappers/javascript-mapping/plugin-mapper.ts'
import jsonPathMapping from '#modules/mappers/json-path-mapping/json-path-mapping.ts'
import uuidGenerator from '#modules/mappers/uuid-generator/uuid-generator.ts'

/** Add a mapper: one import above, one line below. Nothing else changes. */
export const mappers = createRegistry('mapper', [
  compositeNoReturn,
  defaultEmail,
  generateGroups,
  javaScriptMapping,
  jsonPathMapping,
  pluginMapper,
  uuidGenerator,
])
