-- The health of an object of Gatehouse, from the condition that the gateway writes: Ready, or Accepted of a TokenGrant.
local health = { status = 'Progressing', message = 'waiting for the gateway to read the object' }
if obj.status == nil or obj.status.conditions == nil then
  return health
end
for _, condition in ipairs(obj.status.conditions) do
  if condition.type == 'Ready' or condition.type == 'Accepted' then
    -- A condition about an older version of the object says nothing about this one.
    if condition.observedGeneration ~= nil and condition.observedGeneration ~= obj.metadata.generation then
      return health
    end
    health.message = condition.message
    if condition.status == 'True' then
      health.status = 'Healthy'
    elseif condition.reason == 'Waiting' then
      health.status = 'Progressing'
    else
      health.status = 'Degraded'
    end
    return health
  end
end
return health
