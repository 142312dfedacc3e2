from catena.image.resampling import ResizeMethod as ResizeMethod
from catena.image.resampling import resize as resize
from catena.image.resampling import scale_and_translate as scale_and_translate
